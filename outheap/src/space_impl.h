/* SPDX-License-Identifier: MIT */
/* A space from inside: for space.c and its validator.

     reserved = used + free.bytes;   dirty <= committed;   busy <= used;   busy + dirty <= committed;
     busy  = sum of the committed pages that are in use;
     dirty = sum of the pages that are dirty, all of them in free extents, and all below `dirty_end`;
     the extents of the space are the union of its pieces. */
#ifndef OH_SPACE_IMPL_H
#define OH_SPACE_IMPL_H

#include "extent.h"
#include "reserve.h"
#include <pthread.h>

struct oh_piece_record { struct oh_piece_record *next; struct oh_piece piece; };

struct oh_space {
  pthread_mutex_t lock;
  struct oh_extents free;
  struct oh_piece_record *pieces, *spare;
  size_t reserved, used, busy, committed, dirty, seen; /* bytes */
  size_t commits, decommits, advises;
  size_t least, taken; /* in this epoch: the least value that dirty had; bytes given out */
  uintptr_t dirty_end; /* there is no dirty page from here on, but for those that could not be given back */
  bool huge;           /* huge pages were asked for */
};
extern struct oh_space oh_spaces[OH_SPACES];

void oh_space_validate(enum oh_space_id); /* locked by the caller */

#endif
