/* SPDX-License-Identifier: MIT */
/* The roots that other code has registered with the runtime, and what a value is, for reports. */
#include "../runtime.h"
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/globroots.h>
#include <caml/memory.h>

#if BXR_OCAML5
extern bool outheap_marker_follows(void const *pointer) __attribute__((weak)); /* as in ocaml5_marker.c */
#endif

/* --- what a value is ---------------------------------------------------------------------------------------------- */

static bool has_header(value v)
{
#if BXR_OCAML5
  return outheap_marker_follows == NULL || outheap_marker_follows((void const *)v);
#else
  return Is_in_value_area(v);
#endif
}

/* While the world is stopped a young value may be about to move, and a block that has moved about to be filled. */
bxr_kind bxr_runtime_kind(value v, bool stopped)
{
  if (!Is_block(v)) return (bxr_kind){ BXR_KIND_IMMEDIATE, 0 };
  if (stopped && Is_young(v)) return (bxr_kind){ BXR_KIND_YOUNG, 0 };
  if (!Is_young(v) && !has_header(v)) return (bxr_kind){ BXR_KIND_FOREIGN, 0 };
  tag_t tag = Tag_hd((header_t)bxr_load_relaxed(Hp_val(v)));
  if (tag == Custom_tag) return (bxr_kind){ BXR_KIND_CUSTOM, stopped ? 0 : (uintptr_t)Custom_ops_val(v) };
  if (tag != Closure_tag) return (bxr_kind){ BXR_KIND_BLOCK, tag };
  /* the code of a function with several parameters comes after that for partial application, and the arity */
  int arity = (int)Arity_closinfo(bxr_load_relaxed(&Field(v, 1)));
  bool second = arity > 1 || arity < 0;
  return (bxr_kind){ BXR_KIND_CLOSURE, (uintptr_t)bxr_load_relaxed(&Field(v, second ? 2 : 0)) };
}

char const *bxr_runtime_custom_name(uintptr_t operations)
{
  return operations == 0 ? "" : ((struct custom_operations const *)operations)->identifier;
}

/* --- registered roots --------------------------------------------------------------------------------------------- */

/* The releases whose caml_scan_global_roots is known. */
#if OCAML_VERSION < 50000 || (OCAML_VERSION >= 50100 && OCAML_VERSION < 50600)

typedef struct registered_walk {
  void (*see)(void *data, value const *cell);
  void *data;
  value const *end; /* OCaml 5 in native code: the first cell of OCaml's modules, which are visited last */
  bool ended;
} registered_walk;

static void see_registered(registered_walk *w, value const *cell)
{
  if (cell == w->end) w->ended = true;
  if (!w->ended) w->see(w->data, cell);
}

#if BXR_OCAML5
extern value *caml_globals[] __attribute__((weak)); /* not in bytecode */

static value const *first_of_modules(void)
{
  for (value **module = caml_globals; module != NULL && *module != NULL; module++)
    for (value *block = *module; *block != 0; block++)
      if (Wosize_hd((header_t)bxr_load_relaxed(Hp_val(*block))) > 0) return (value const *)&Field(*block, 0);
  return NULL;
}

static void visit_registered(void *data, value v, volatile value *cell)
{
  (void)v;
  see_registered(data, (value const *)cell);
}

static void scan_registered(registered_walk *w)
{
  w->end = first_of_modules();
  caml_scan_global_roots(visit_registered, w);
}
#else
static registered_walk *current_walk; /* under the master lock */

static void visit_registered(value v, value *cell)
{
  (void)v;
  see_registered(current_walk, cell);
}

static void scan_registered(registered_walk *w)
{
  current_walk = w;
  caml_scan_global_roots(visit_registered);
}
#endif

bool bxr_runtime_other_roots(void (*f)(void *data, value const *cell), void *data)
{
  registered_walk w = { .see = f, .data = data };
  scan_registered(&w);
  return true;
}
#else
bool bxr_runtime_other_roots(void (*f)(void *data, value const *cell), void *data)
{
  (void)f;
  (void)data;
  return false;
}
#endif

/* --- named values ------------------------------------------------------------------------------------------------- */

/* The runtime hands on no data of the caller; one thread reports at a time. It keeps the names. */
static bxr_named *named_values;
static size_t named_most, named_number;

static void add_named(value const *v, char *name)
{
  (void)v; /* in OCaml 5 not the cell */
  if (named_number < named_most) named_values[named_number++].name = name;
}

size_t bxr_runtime_named_values(bxr_named *named, size_t most)
{
  named_values = named;
  named_most = most;
  named_number = 0;
  caml_iterate_named_values(add_named);
  for (size_t i = 0; i < named_number; i++) named[i].cell = caml_named_value(named[i].name);
  return named_number;
}
