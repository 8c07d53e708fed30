/* SPDX-License-Identifier: MIT */
/* The list of spaces: what each is for, the kind of its chunks, and the huge pages that it gets unless a setting says
   otherwise. */
#ifndef OH_SPACES_H
#define OH_SPACES_H

#include "kind.h"

#define OH_SPACES_LIST(X)                                                               \
  X(YOUNG, OH_KIND_YOUNG, ADVISE)    /* minor heaps */                                  \
  X(POOLS, OH_KIND_MAJOR, ADVISE)    /* pools of OCaml 5: pool.h */                     \
  X(BLOCKS, OH_KIND_MAJOR, ADVISE)   /* large blocks; heap chunks of 4.14: block.h */   \
  X(MARKED, OH_KIND_MAJOR, OFF)      /* outheap_allocate(OUTHEAP_MAJOR) */              \
  X(VALUES, OH_KIND_VALUES, OFF)     /* outheap_allocate(OUTHEAP_VALUES) */             \
  X(FOREIGN, OH_KIND_FOREIGN, OFF)   /* outheap_allocate(OUTHEAP_FOREIGN) */

#define OH_SPACES_ID(name, kind, thp) OH_SPACE_##name,
enum oh_space_id { OH_SPACES_LIST(OH_SPACES_ID) OH_SPACES };
#undef OH_SPACES_ID

static inline enum oh_kind oh_spaces_kind(enum oh_space_id id)
{
#define OH_SPACES_KIND(name, kind, thp) kind,
  static signed char const kinds[OH_SPACES] = { OH_SPACES_LIST(OH_SPACES_KIND) };
#undef OH_SPACES_KIND
  return (enum oh_kind)kinds[id];
}

#endif
