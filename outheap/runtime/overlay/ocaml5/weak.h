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

/* Declares the static values of the unit weak. */
void oh_weak_declare(void);

#endif
