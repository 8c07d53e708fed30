/* SPDX-License-Identifier: MIT */
/* The state of a space, for the files space*.c.

     reserved = used + free.bytes;   dirty <= committed;   busy <= used;   busy + dirty <= committed;
     busy  = sum of the committed pages that are in use;
     dirty = sum of the pages that are dirty, all of them in free extents, and all below `dirty_end`;
     the extents of the space are the union of its pieces. */
#ifndef OH_SPACE_STATE_H
#define OH_SPACE_STATE_H

#include "extents.h"
#include "reserve.h"
#include <pthread.h>

struct oh_space_state_piece { struct oh_space_state_piece *next; struct oh_reserve_piece piece; };

/* See space_range.h. */
struct oh_space_state_range { struct oh_space_state_range *next; uintptr_t base; size_t bytes; bool taken; };

struct oh_space_state {
  pthread_mutex_t trim; /* of oh_space_trim; taken before `lock` */
  pthread_mutex_t lock;
  struct oh_extents free;
  struct oh_space_state_piece *pieces, *spare;
  struct oh_space_state_range *ranges;
  size_t reserved, used, busy, committed, dirty; /* bytes */
  size_t commits, purges, advises;
  size_t least, taken; /* in this epoch: the least value of `dirty`; bytes allocated */
  uintptr_t dirty_end; /* no page from here on is dirty, except those that the system refused to purge */
  unsigned cycles;     /* of the collector, in this epoch */
  bool huge, granted;  /* huge pages were asked for; and the system says that it has some */
};
extern struct oh_space_state oh_space_states[OH_SPACES];

/* Sees to it that there is a record for another piece. False: no memory. */
bool oh_space_state_prepare_piece(struct oh_space_state *);
/* Notes a piece as the space's. A record must be there. */
void oh_space_state_add_piece(struct oh_space_state *, struct oh_reserve_piece);

static inline enum oh_space_id oh_space_state_id(struct oh_space_state const *s)
{
  return (enum oh_space_id)(s - oh_space_states);
}

#endif
