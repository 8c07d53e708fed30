/* SPDX-License-Identifier: MIT */
/* Weak pointers and ephemerons, for those who go through them: each key is a cache miss, which the runtime waits for
   before it looks at the next one. Here the headers of the next OH_WEAK_AHEAD keys are on their way, those of the next
   ephemeron included. Fetching ahead does nothing with a word that is no address. */
#ifndef OH_WEAK_H
#define OH_WEAK_H

#include "prelude.h"
#include <caml/weak.h>

enum { OH_WEAK_AHEAD = 16 };

static inline void oh_weak_fetch(value v, mlsize_t i)
{
  __builtin_prefetch((void const *)((uintptr_t)atomic_load_relaxed(Op_atomic_val(v) + i) - sizeof(header_t)));
}

/* Before key `i` of `v`, which has `size` words. */
static inline void oh_weak_ahead(value v, mlsize_t i, mlsize_t size)
{
  if (i + OH_WEAK_AHEAD < size) oh_weak_fetch(v, i + OH_WEAK_AHEAD);
}

/* Before an ephemeron of a list: `next` follows it there (0: none), and was fetched when the one before was looked
   at. */
static inline void oh_weak_next(value next)
{
  if (next == 0) return;
  uintptr_t after = (uintptr_t)atomic_load_relaxed(Op_atomic_val(next) + CAML_EPHE_LINK_OFFSET);
  __builtin_prefetch((void const *)(after - sizeof(header_t)));
  __builtin_prefetch((void const *)(after + 7 * sizeof(value)));
  mlsize_t size = Wosize_val(next);
  mlsize_t end = size < CAML_EPHE_FIRST_KEY + OH_WEAK_AHEAD ? size : CAML_EPHE_FIRST_KEY + OH_WEAK_AHEAD;
  for (mlsize_t i = CAML_EPHE_FIRST_KEY; i < end; i++) oh_weak_fetch(next, i);
}

/* Before the current domain ends, and its weak arrays and ephemerons become orphans. Up to OCaml 5.4 the runtime
   expects marked ones, and marks those of the list `todo` only; and while ephemerons are swept it takes that list for
   one that has yet to be marked, counts a domain too few, and no phase ends any more (docs/internals/upstream.md). So
   here the others are marked, or all are swept, as OCaml 5.5 does. `left` counts the domains that have yet to sweep. */
static inline void oh_weak_leave(caml_domain_state *domain, intnat (*sweep)(caml_domain_state *, intnat),
                                 atomic_uintnat *left)
{
#if OCAML_VERSION < 50500
  struct caml_ephe_info *mine = domain->ephe_info;
  if (caml_gc_phase != Phase_sweep_ephe) {
    for (value v = mine->live; v != 0; v = Ephe_link(v)) caml_darken(domain, v, NULL);
    return;
  }
  bool counted = mine->must_sweep_ephe || mine->todo != 0;
  if (mine->must_sweep_ephe) {
    value *end = &mine->todo;
    while (*end != 0) end = &Ephe_link(*end);
    *end = mine->live;
    mine->live = 0;
    mine->must_sweep_ephe = 0;
  }
  while (mine->todo != 0) (void)sweep(domain, 100000);
  if (counted) (void)atomic_fetch_sub(left, 1);
#else
  (void)domain, (void)sweep, (void)left;
#endif
}

/* Declares the static values of the unit weak. */
void oh_weak_declare(void);

#endif
