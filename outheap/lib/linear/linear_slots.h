/* SPDX-License-Identifier: MIT */
/* Numbers of slots, from 0; those that were given back are taken first. */
#ifndef OUTHEAP_LINEAR_SLOTS_H
#define OUTHEAP_LINEAR_SLOTS_H

#include "linear_lock.h"

/* free_count <= room; every number is below `begun`, and in `free` at most once */
struct outheap_linear_slots { struct outheap_linear_lock lock; uint32_t *free; size_t free_count, room, begun; };

struct outheap_linear_slots *outheap_linear_slots_new(void);
/* Returns a number, or -1 if there is no memory or there are 2^32 - 3 of them. */
intnat outheap_linear_slots_take(struct outheap_linear_slots *);
void outheap_linear_slots_give(struct outheap_linear_slots *, uint32_t number);

#endif
