/* SPDX-License-Identifier: MIT */
/* Failures, roots of C code, and a check of everything that the library knows about its cells. */
#include "hashcons_collect.h"
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <errno.h>

static long fail_after; /* 0: none; 1: the next; -1: all */
static long failed;
int hashcons_faults_now(void)
{
  if (fail_after == 0 || (fail_after > 0 && --fail_after != 0)) return 0;
  failed++;
  errno = ENOMEM;
  return 1;
}
/* Result: how many failed since. */
value hashcons_test_fail(value n)
{
  long before = failed;
  fail_after = Long_val(n);
  failed = 0;
  return Val_long(before);
}

static value held = Val_unit;
value hashcons_test_hold(value v)
{
  static bool registered;
  if (!registered) caml_register_generational_global_root(&held);
  registered = true;
  caml_modify_generational_global_root(&held, v);
  return Val_unit;
}
value hashcons_test_held(value unit) { return (void)unit, held; }

static struct custom_operations strange = { "hashcons_test.strange", custom_finalize_default, custom_compare_default,
                                            custom_hash_default, custom_serialize_default, custom_deserialize_default,
                                            custom_compare_ext_default, custom_fixed_length_default };
value hashcons_test_custom(value unit) { return (void)unit, caml_alloc_custom(&strange, 8, 0, 1); }
value hashcons_test_abstract(value unit) { return (void)unit, caml_alloc(1, Abstract_tag); }
value hashcons_test_foreign(value unit)
{
  static char page[64] __attribute__((aligned(16)));
  return (void)unit, (value)(page + 16);
}

static char const *wrong_cell(outheap_hashcons_cell *c)
{
  if (outheap_hashcons_memory_cell((uintptr_t)c) != c) return "a slot leads to no cell";
  bool swept = outheap_hashcons_reach.phase == OUTHEAP_HASHCONS_SWEEP;
  if (swept && !outheap_hashcons_mark_is_set(c)) return NULL;
  uint64_t *end = c + outheap_hashcons_memory_page((uintptr_t)c)->words;
  for (uint64_t *at = c; at < end && *at != 0; at += 1 + Wosize_hd(*at)) {
    if (at + 1 + Wosize_hd(*at) > end) return "a block is longer than its cell";
    for (mlsize_t i = 1; Tag_hd(*at) < No_scan_tag && i <= Wosize_hd(*at); i++) {
      if ((at[i] & 1) != 0 || !outheap_hashcons_memory_has(at[i])) continue;
      outheap_hashcons_cell *child = outheap_hashcons_memory_cell(at[i]);
      if (child == NULL) return "a field leads to a free cell";
      if (swept && !outheap_hashcons_mark_is_set(child)) return "a live cell leads to a dead one";
    }
  }
  return NULL;
}

static char const *wrong(void)
{
  size_t cells = 0, used = 0;
  for (struct outheap_hashcons_table *t = outheap_hashcons_table_all; t != NULL; t = t->next) {
    size_t here = 0, tombstones = 0;
    for (size_t i = 0; i >> t->log == 0; i++) {
      tombstones += t->slots[i] == 1;
      if (!outheap_hashcons_table_holds(t->slots[i])) continue;
      here++;
      char const *w = wrong_cell(outheap_hashcons_table_cell_of(t->slots[i]));
      if (w != NULL) return w;
    }
    if (here != t->used || tombstones != t->tombstones) return "a table does not know what it holds";
    cells += here;
  }
  for (size_t i = 0; i < outheap_hashcons_memory.chunks; i++) {
    struct outheap_hashcons_chunk *c = outheap_hashcons_memory.chunk[i];
    for (size_t j = 0; j < c->begun; j++)
      if (c->page[j].words != 0 && c->page[j].back == 0) used += c->page[j].used;
  }
  if (cells != outheap_hashcons_memory.cells) return "not every cell is in a table";
  return used == cells ? NULL : "pages count other cells than tables";
}

/* Says what is wrong; the empty string: nothing. */
value hashcons_test_validate(value unit)
{
  (void)unit;
  outheap_hashcons_lock_take();
  char const *w = wrong();
  outheap_hashcons_lock_give();
  return caml_copy_string(w == NULL ? "" : w);
}

value hashcons_test_slice(value work) { return outheap_hashcons_collect_slice((size_t)Long_val(work)), Val_unit; }
value hashcons_test_is_tiny(value unit)
{
  (void)unit;
#ifdef OUTHEAP_HASHCONS_TINY
  return Val_true;
#else
  return Val_false;
#endif
}
value hashcons_test_phase(value unit) { return (void)unit, Val_int(outheap_hashcons_reach.phase); }

/* From OCaml 5.5 on marking begins in a minor collection, some time after the cycle: in the next one, after this.
   Result: is it so? */
extern uintnat mark_phase_requested __asm__("caml_gc_mark_phase_requested") __attribute__((weak));
value hashcons_test_begin_marking(value unit)
{
  (void)unit;
  if (&mark_phase_requested == NULL) return Val_false;
  __atomic_store_n(&mark_phase_requested, 1, __ATOMIC_RELEASE);
  return Val_true;
}
