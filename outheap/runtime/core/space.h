/* SPDX-License-Identifier: MIT */
/* A space: memory of one kind and one policy, in chunks of its own, allocated in large pages, best fit with coalescing.

   Each space has its own chunks so that the process map stays small: within a chunk all mappings have the same flags
   (but for large pages that are split), and memory is committed from low addresses upwards. Nothing is ever unmapped:
   free memory is purged (returned to the system by madvise), and stays committed.

   Locks: one for each space, which is not held while oh_space_purge and oh_space_trim give memory back. A trim lets
   those who wait for it in between two steps: a fork, another trim. */
#ifndef OH_SPACE_H
#define OH_SPACE_H

#include "page.h"

struct oh_space_counters {
  size_t reserved;         /* bytes of address space */
  size_t used;             /* bytes allocated */
  size_t committed;        /* bytes made accessible */
  size_t dirty;            /* bytes not allocated, but committed and maybe resident */
  size_t commits, purges, advises, reservations, tainted;
};

/* Allocates `bytes` (a positive multiple of OH_PAGE), aligned to OH_PAGE, committed or only reserved. The contents are
   unspecified, unless `*fresh` (if asked for) says that all bytes are zero. NULL with errno = ENOMEM when there is no
   address space or memory, or EINVAL. */
void *oh_space_alloc(enum oh_space_id, size_t bytes, bool commit, bool *fresh);

/* Frees them, or a part of them cut at large pages. Dirty memory beyond the space's allowance (space_memory.h) is
   purged. */
void oh_space_free(enum oh_space_id, void *start, size_t bytes);

/* For input that may be wrong: are these whole large pages of this space, in use? And oh_space_free, unless they are
   not: false. */
bool oh_space_is_used(enum oh_space_id, void *start, size_t bytes);
bool oh_space_free_checked(enum oh_space_id, void *start, size_t bytes);

/* A range of addresses, of which nothing is reserved before oh_space_commit. Only where there is a zone, in which
   nobody else maps anything. `bytes`: a multiple of OH_PAGE. NULL with errno = ENOMEM, or EINVAL. */
void *oh_space_take_range(enum oh_space_id, size_t bytes);

/* Gives such a range back; its memory is returned to the system, its reserved parts are kept for the next range. False
   if there is none that begins there. */
bool oh_space_give_range(enum oh_space_id, void *start);

/* Commits a part (cut at system pages) of pages allocated without `commit`, or of a range, and with it the large pages
   that it lies in. False: errno = ENOMEM. */
bool oh_space_commit(enum oh_space_id, void *start, size_t bytes);

/* Purges a part (cut at system pages) of used pages, or of a range: what of it is committed reads as zeroes
   afterwards. Large pages of which it is a part are *split*: were they huge pages for the kernel still, its khugepaged
   would bring what was given back in again (max_ptes_none), 16 MiB in ten seconds. Of each space some
   thousands are split at most, as each may cost two mappings. */
void oh_space_purge(enum oh_space_id, void *start, size_t bytes);

/* Bytes of large pages that are split. Without the lock. */
size_t oh_space_split(enum oh_space_id);

/* These large pages, of which some are split, are in use again as a whole, or nearly: huge pages are welcome. A space
   does that by itself for pages that it allocates. Takes no lock where none is split. */
void oh_space_unite(enum oh_space_id, void *start, size_t bytes);

/* The reclaim thread looks: what no one has needed since its last look but one goes back, except for what
   `keep` says, in steps, without a lock during system calls. Result: bytes. With `delayed`, nothing goes back before
   that. */
size_t oh_space_decay(enum oh_space_id);
void oh_space_delay(enum oh_space_id, bool delayed);

/* When this becomes true, the thread's trims and decays end after the step that they are in. NULL: they do not. */
extern _Thread_local bool const *oh_space_ends __attribute__((tls_model("initial-exec")));
static inline bool oh_space_is_over(void) { return oh_space_ends != NULL && oh_load_relaxed(oh_space_ends); }

/* A cycle of the collector has ended: after some without an end of the space's epoch, that ends (space_memory.h).
   Result: how many bytes may be free and resident elsewhere, so that the allowance is kept. */
size_t oh_space_age(enum oh_space_id);

/* Purges all that is not in use. Result: bytes. */
size_t oh_space_trim(enum oh_space_id);

void oh_space_count(enum oh_space_id, struct oh_space_counters *result);

/* All invariants of all spaces; aborts with a message. */
void oh_space_validate(void);

/* For start.c: a fork, with all locks, where there are pages of the system's pool (hugetlb.h): before it, after it in
   the parent, which waits, and in the child, which copies them. Costs nothing where there are none. */
void oh_space_fork(void);
void oh_space_fork_done(void);
void oh_space_forked(void);

/* For start.c: the locks of all spaces. */
void oh_space_lock_all(void);
void oh_space_unlock_all(void);

#endif
