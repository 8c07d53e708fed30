/* SPDX-License-Identifier: MIT */
/* A space's own memory: its state, and which of its pages are accessible, which go back to the system and when, and
   where huge pages are wanted. Only space.c asks; its public face is space.h. */
#ifndef OH_SPACE_MEMORY_H
#define OH_SPACE_MEMORY_H

#include "address_space.h"
#include "extents.h"
#include <pthread.h>

/* --- the state of a space ----------------------------------------------------------------------------------------- */

/* The state of a space, for the files space*.c.

     reserved = used + free.bytes;   dirty <= committed;   busy <= used;   busy + dirty <= committed;
     busy  = sum of the committed pages that are in use;
     dirty = sum of the pages that are dirty, all of them in free extents, and all below `dirty_end`;
     split = sum of the pages that are split;   split <= OH_SPACE_MEMORY_SPLIT_MOST;   split != 0  =>  huge;
     the extents of the space are the union of its pieces. */

/* Bytes of a space. Each such page may cost two mappings; of these, two spaces take a quarter of what Linux allows
   (vm.max_map_count = 65530). */
#ifndef OH_SPACE_MEMORY_SPLIT_MOST
#define OH_SPACE_MEMORY_SPLIT_MOST (4096 * OH_PAGE)
#endif

struct oh_space_state_piece { struct oh_space_state_piece *next; struct oh_reserve_piece piece; };

/* See space.h. */
struct oh_space_state_range { struct oh_space_state_range *next; uintptr_t base; size_t bytes; bool taken; };

struct oh_space_state {
  pthread_mutex_t trim; /* of oh_space_trim; taken before `lock` */
  size_t waiting;       /* threads that wait for `trim`. Atomic */
  pthread_mutex_t lock;
  struct oh_extents free;
  struct oh_space_state_piece *pieces, *spare;
  struct oh_space_state_range *ranges;
  size_t reserved, used, busy, committed, dirty; /* bytes */
  size_t commits, purges, advises;
  size_t split; /* also read without the lock */
  size_t least, taken; /* in this epoch: the least value of `dirty`; bytes allocated */
  uintptr_t dirty_end; /* no page from here on is dirty, except those that the system refused to purge */
  unsigned cycles;     /* of the collector, in this epoch */
  size_t low, low_before; /* the least value of `dirty` since the reclaim thread's last look; and between the two before
  */
  bool delayed;        /* memory goes back by the reclaim thread only */
  bool huge, granted;  /* huge pages were asked for; and the system says that it has some */
};
extern struct oh_space_state oh_space_states[OH_SPACES];

/* Ensures that there is a record for another piece. False: no memory. */
bool oh_space_state_prepare_piece(struct oh_space_state *);
/* Adds a piece to the space. A record must be there. */
void oh_space_state_add_piece(struct oh_space_state *, struct oh_reserve_piece);

static inline enum oh_space_id oh_space_state_id(struct oh_space_state const *s)
{
  return (enum oh_space_id)(s - oh_space_states);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* What is committed, what is purged and when. The caller of all these functions has the lock.

   A page that is free and maybe resident is *dirty*. Dirty memory is not purged at once, since memory that was freed is
   often allocated again soon. Time is counted in epochs: an epoch ends when as much has been allocated in it as is in
   use. At its end, memory that was dirty through the whole of it was not needed, however much was allocated and freed.
   How much that is is known from the least amount of dirty memory at any moment of the epoch. It is purged, down to an
   allowance (setting `keep`). For example: 100 MiB are in use, and a program frees and allocates 40 MiB again and
   again; 60 MiB were dirty at the most, and never less than 20. Then 20 MiB, less the allowance, are purged at the end
   of the epoch, and the 40 that the program needs in each round stay.
   More dirty memory than oh_settings_free.slack allows is purged at once, down to three quarters of that. */

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

/* The reclaim thread looks. Result: the bytes, whole large pages, that were dirty all the time since its last look but
   one, beyond an allowance: the caller gives them back by `hold`. */
size_t oh_space_memory_decay(struct oh_space_state *);

/* Advice on huge pages for a new piece, and for all pieces once the space is large enough. */
void oh_space_memory_advise_piece(struct oh_space_state *, struct oh_reserve_piece);
/* A part of this large page is about to be purged. */
void oh_space_memory_split(struct oh_space_state *, uintptr_t page);
/* These large pages are not split any longer; with `advise` the kernel is told. */
void oh_space_memory_unite(struct oh_space_state *, uintptr_t from, uintptr_t to, bool advise);
void oh_space_memory_consider_huge(struct oh_space_state *);

/* Giving back all dirty memory, without the lock during system calls. `hold` takes the last dirty run below `top`, of
   at most `most` bytes, out of the free memory; false: there is none. The caller unlocks the space and calls
   `give_back`, whose result is for `release`, under the lock again: it makes the run free. Result: the bytes that were
   given back. With strict accounting (oh_os_is_strict), and if they are of the system's pool, they are uncommitted as
   well. */
struct oh_space_memory_run { uintptr_t base; size_t bytes; };
enum oh_space_memory_given { OH_SPACE_MEMORY_REFUSED, OH_SPACE_MEMORY_PURGED, OH_SPACE_MEMORY_UNCOMMITTED };
bool oh_space_memory_hold(struct oh_space_state *, uintptr_t top, size_t most, struct oh_space_memory_run *);
enum oh_space_memory_given oh_space_memory_give_back(struct oh_space_memory_run);
size_t oh_space_memory_release(struct oh_space_state *, struct oh_space_memory_run, enum oh_space_memory_given);

/* --- pages of the system's pool (hugetlb.h) ----------------------------------------------------------------------- */

/* Bytes in such pages, of all spaces. Any thread. */
size_t oh_space_memory_hugetlb(void);
/* [from, to) is in other pages now, or not committed. */
void oh_space_memory_no_hugetlb(uintptr_t from, uintptr_t to);

#endif
