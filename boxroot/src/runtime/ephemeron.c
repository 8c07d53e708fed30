/* SPDX-License-Identifier: MIT */
/* The runtime's weak arrays and ephemerons: as Weak and Ephemeron do it, but without what runs the GC or code of the
   program (caml_ephe_create and caml_ephe_get_key handle signals and finalisers; the latter allocates). */
#include "../runtime.h"
#include <caml/domain.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/weak.h>

extern value caml_ephe_set_key(value array, value index, value v);
extern value caml_ephe_check_key(value array, value index);
extern value caml_ephe_set_data(value array, value v);
extern value caml_ephe_check_data(value array);

#if BXR_OCAML5
extern bool outheap_marker_follows(void const *pointer) __attribute__((weak)); /* as in ocaml5_marker.c */
#endif

/* The tag of a lazy value is read while another domain may force it: whichever it is, it is lazy. */
bool bxr_runtime_is_lazy(value v)
{
  if (!Is_block(v)) return false;
#if !BXR_OCAML5
  if (!Is_in_value_area(v)) return false;
#else
  if (!Is_young(v) && outheap_marker_follows != NULL && !outheap_marker_follows((void const *)v)) return false;
#endif
  tag_t tag = Tag_hd((header_t)bxr_load_relaxed(Hp_val(v)));
#ifdef Forcing_tag
  if (tag == Forcing_tag) return true;
#endif
  return tag == Lazy_tag || tag == Forward_tag;
}

#if BXR_KNOWN_WEAK

#if BXR_OCAML5
#define FIRST_OF_ALL (Caml_state->ephe_info->live)
#define allocate caml_alloc_shr_noexc
#else
#define FIRST_OF_ALL caml_ephe_list_head
#define allocate caml_alloc_shr_no_track_noexc
#endif

value bxr_runtime_weak_array(size_t n)
{
  mlsize_t words = n + CAML_EPHE_FIRST_KEY;
  value array = allocate(words, Abstract_tag);
  if (array == 0) return 0;
  for (mlsize_t i = CAML_EPHE_DATA_OFFSET; i < words; i++) Field(array, i) = caml_ephe_none;
  Field(array, CAML_EPHE_LINK_OFFSET) = FIRST_OF_ALL;
  FIRST_OF_ALL = array;
  return array;
}

bool bxr_runtime_keeps_weak_arrays(void)
{
  return !BXR_OCAML5 || OCAML_VERSION >= 50500 || bxr_runtime_domain() == 0;
}

/* What the runtime keeps of weak arrays goes just before the mark stack does; a domain that runs has one. */
bool bxr_runtime_weak_arrays_are_over(void)
{
#if BXR_OCAML5
  return Caml_state->mark_stack == NULL;
#else
  return false;
#endif
}

/* Only a young value is more than a store: the next minor collection must know of the key. The array has no data, to
   which a key that dies would matter. Release: the block is filled before another domain finds it. */
void bxr_runtime_weak_set(value array, size_t i, value v)
{
  if (BOXROOT_CONSERVATIVE || (Is_block(v) && Is_young(v))) (void)caml_ephe_set_key(array, Val_long(i), v);
  else bxr_store_release((value *)array + CAML_EPHE_FIRST_KEY + i, v);
}

/* While the collector empties the arrays a key may be dead, and be there still. The runtime knows. */
static bool may_be_dead(void)
{
#if BOXROOT_CONSERVATIVE
  return true;
#elif BXR_OCAML5
  return caml_gc_phase == Phase_sweep_ephe;
#else
  return caml_gc_phase == Phase_clean;
#endif
}

/* A value that was alive when marking started by way of weak arrays only is not marked unless it is found. */
static void keep_for_this_cycle(value v)
{
  if (BXR_UNLIKELY(bxr_runtime_weak_arrays_are_over())) return; /* nothing is marked any more */
#if !BXR_OCAML5
  if (caml_gc_phase == Phase_mark) caml_darken(v, NULL);
#elif !BOXROOT_CONSERVATIVE
  if (bxr_runtime_marking_has_started()) bxr_runtime_darken(v);
#elif OCAML_VERSION >= 50500
  if (caml_marking_started()) caml_darken(Caml_state, v, NULL);
#else
  caml_darken(Caml_state, v, NULL);
#endif
}

/* Since OCaml 5.4 a minor collection locks keys, and another domain may find one locked: it waits. An acquire load: the
   domain that promoted the value has filled it before it stored the key. */
static value key_of(value array, size_t i)
{
#if BXR_OCAML5 && OCAML_VERSION >= 50400
  return Ephe_key(array, CAML_EPHE_FIRST_KEY + i);
#else
  return bxr_load_acquire((value *)array + CAML_EPHE_FIRST_KEY + i);
#endif
}

bool bxr_runtime_weak_get(value array, size_t i, value *v)
{
  if (BXR_UNLIKELY(may_be_dead()) && !Bool_val(caml_ephe_check_key(array, Val_long(i)))) return false;
  value key = key_of(array, i);
  if (key == caml_ephe_none) return false;
  keep_for_this_cycle(key);
  *v = key;
  return true;
}

/* The marker of OCaml 4.14 takes a key in the middle of a block of closures for dead, and what cleans ephemerons does
   not, so that dead data stays in place (docs/internals/upstream.md). There the key is the block, which lives as long;
   and a second key, an immediate value, which always lives, says where in the block. */
enum { KEY = CAML_EPHE_FIRST_KEY, MIDDLE };

static mlsize_t offset_of_key(value key)
{
#if BXR_OCAML5
  (void)key;
#else
  if (Is_block(key) && Is_in_value_area(key) && Tag_val(key) == Infix_tag) return Infix_offset_val(key);
#endif
  return 0;
}

value bxr_runtime_ephemeron(value key) { return bxr_runtime_weak_array(offset_of_key(key) == 0 ? 1 : 2); }

/* The runtime knows what it must be told: of young data, and (4.14) while it marks. If it looks at the key meanwhile,
   since ephemerons are being swept, that is alive. */
void bxr_runtime_ephemeron_set(value ephemeron, value key, value data)
{
  mlsize_t offset = offset_of_key(key);
  if (offset != 0) Field(ephemeron, MIDDLE) = Val_long(offset);
  bxr_runtime_weak_set(ephemeron, 0, key - (value)offset);
  (void)caml_ephe_set_data(ephemeron, data);
}

/* A key that dies takes the data with it, and another domain may see to that at this moment: so both are looked at, and
   the key first: a key that a minor collection has locked is let go when the data is as it stays. */
bool bxr_runtime_ephemeron_get(value ephemeron, value *key, value *data)
{
  if (BXR_UNLIKELY(may_be_dead()) && !Bool_val(caml_ephe_check_data(ephemeron))) return false;
  value k = key_of(ephemeron, 0);
  value d = bxr_load_acquire((value *)ephemeron + CAML_EPHE_DATA_OFFSET);
  if (k == caml_ephe_none || d == caml_ephe_none) return false;
  if (key != NULL) {
    keep_for_this_cycle(k);
    *key = Wosize_val(ephemeron) == MIDDLE ? k : k + Long_val(Field(ephemeron, MIDDLE));
  }
  if (data != NULL) keep_for_this_cycle(*data = d);
  return true;
}

bool bxr_runtime_is_ephemeron(value v)
{
  return Is_block(v) && Tag_val(v) == Abstract_tag && (Wosize_val(v) == MIDDLE || Wosize_val(v) == MIDDLE + 1);
}

#else /* nothing of the runtime is relied on, and nothing is made */

bool bxr_runtime_keeps_weak_arrays(void) { return false; }
bool bxr_runtime_weak_arrays_are_over(void) { return false; }
value bxr_runtime_weak_array(size_t n) { (void)n; return 0; }
void bxr_runtime_weak_set(value array, size_t i, value v) { (void)array; (void)i; (void)v; }
bool bxr_runtime_weak_get(value array, size_t i, value *v) { (void)array; (void)i; (void)v; return false; }
value bxr_runtime_ephemeron(value key) { (void)key; return 0; }
void bxr_runtime_ephemeron_set(value e, value key, value data) { (void)e; (void)key; (void)data; }
bool bxr_runtime_ephemeron_get(value e, value *key, value *data) { (void)e; (void)key; (void)data; return false; }
bool bxr_runtime_is_ephemeron(value v) { (void)v; return false; }

#endif
