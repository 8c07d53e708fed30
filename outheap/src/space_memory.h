/* SPDX-License-Identifier: MIT */
/* The memory of a space: what is committed, what is purged and when, where huge pages are wanted. The caller has the
   lock.

   Dirty memory (free, and maybe resident) is purged late, since memory that is taken again soon should stay. An epoch
   ends when as much has been allocated in it as is in use. Dirty memory that was not needed at any time of the epoch,
   the least that there was, is purged at its end except for an allowance (settings `keep`, `keep_share`). So what a
   program frees and takes again in each cycle of the collector stays. What exceeds `slack` is purged at once. */
#ifndef OH_SPACE_MEMORY_H
#define OH_SPACE_MEMORY_H

#include "space_state.h"

/* Commits [from, to), and if convenient more, up to `most`: the steps grow with the space. False: no memory; a part may
   be committed. */
bool oh_space_memory_commit(struct oh_space_state *, uintptr_t from, uintptr_t to, uintptr_t most);

/* A part of a free extent that is committed already: the last resort. 0 if there is none. */
uintptr_t oh_space_memory_committed(struct oh_space_state *, size_t bytes, struct oh_extents_node **found);

/* Account and policy after pages were allocated, committed, or freed. */
void oh_space_memory_allocated(struct oh_space_state *, uintptr_t base, size_t bytes);
void oh_space_memory_freed(struct oh_space_state *, uintptr_t base, size_t bytes);

/* A cycle of the collector has ended. After four without an end of the epoch it ends, too: the program allocates
   little. Some 64 MiB are given back at most; the next call goes on. Result: what is left of the allowance. */
size_t oh_space_memory_age(struct oh_space_state *);

/* Advice on huge pages for a new piece, and for all pieces once the space is large enough. */
void oh_space_memory_advise_piece(struct oh_space_state *, struct oh_reserve_piece);
void oh_space_memory_consider_huge(struct oh_space_state *);

/* Giving back all dirty memory, without the lock during system calls. `hold` takes the last dirty run below `top`, of
   at most `most` bytes, out of the free memory; false: there is none. The caller unlocks the space and calls
   `give_back`, whose result is for `release`, under the lock again: it makes the run free. Result: the bytes that were
   given back. With strict accounting (oh_os_is_strict) they are uncommitted as well. */
struct oh_space_memory_run { uintptr_t base; size_t bytes; };
enum oh_space_memory_given { OH_SPACE_MEMORY_REFUSED, OH_SPACE_MEMORY_PURGED, OH_SPACE_MEMORY_UNCOMMITTED };
bool oh_space_memory_hold(struct oh_space_state *, uintptr_t top, size_t most, struct oh_space_memory_run *);
enum oh_space_memory_given oh_space_memory_give_back(struct oh_space_memory_run);
size_t oh_space_memory_release(struct oh_space_state *, struct oh_space_memory_run, enum oh_space_memory_given);

#endif
