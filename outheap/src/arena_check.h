/* SPDX-License-Identifier: MIT */
/* The invariants of arena.h, and whether a pointer is one to a block. */
#ifndef OH_ARENA_CHECK_H
#define OH_ARENA_CHECK_H

#include "arena.h"

/* Aborts with a message if an invariant of the arena does not hold. The caller has its lock. */
void oh_arena_check(struct oh_arena *);

/* Checked build: aborts if this is no used block of an arena. Without the lock. */
#if OH_DEBUG
void oh_arena_check_block(struct oh_arena_block const *);
#else
static inline void oh_arena_check_block(struct oh_arena_block const *b) { (void)b; }
#endif

#endif
