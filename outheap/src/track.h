/* SPDX-License-Identifier: MIT */
/* Tracked memory: regions that the program writes to. Their words may come to hold pointers to the heap, so to the
   collector a tracked region is one large block with few fields: the *slots*, words that a pointer to outside of the
   region was stored in. When the marker first meets a pointer to the region in a cycle, it darkens what the slots hold;
   compaction updates them. So the region keeps alive what it refers to, and only while it is in use itself: a ring of
   pointers through the heap and back does not keep it.

     a word of the region holds a pointer to outside, and no domain is between that store and oh_track_wrote
                                                                       =>   its bit in `slots` is set
     a bit of `slots` is set   =>   the bit of its group of 64 words in `groups` is set
     met   <=>   what the slots held was darkened since marking began (or the region is younger than that), or `waits`
     marking has not begun in this cycle   =>   all regions are met, those that were not have ended
     waits   <=>   slots from number `next_slot` on are not darkened yet: the region is in the list of those that wait,
                   or a marker has it in its hands, between two polls
     some region waits   =>   whoever put it into the list, or back there, was the last of all, and has not ended its
                              marking: so it looks there once more

   So a region is marked as a large block is, a few slots at a time. What a slot loses before the marker comes to it is
   darkened by the deletion barrier; what it gets after the beginning of marking was reachable then, or is marked.

   A bit is cleared when the marker finds something else in the word. A writer stores first, and then sets the bit, set
   or not; the marker clears the bit first, and then looks at the word again. Either the bit is set after it was
   cleared, or the clearing, a read and a write of the same word, follows the setting: then the marker sees the store.

   Deletion barrier and remembered set are the runtime's own: to it, these words are words of the major heap. */
#ifndef OH_TRACK_H
#define OH_TRACK_H

#include "atomic.h"
#include "config.h"
#include "table.h"

struct oh_track {
  uintptr_t base, bytes;
  uint64_t *slots;  /* a bit for each word of the region */
  uint64_t *groups; /* a bit for each word of `slots`; never cleared */
  size_t size;      /* bytes of this record, which the bits follow */
  bool met;
  bool kept;        /* a root: met when marking begins */
  bool fresh;       /* made in this cycle: so it is a root, too, if marking begins later than the cycle */
  bool waits;
  size_t next_slot;
  struct oh_track *next, *pending;
};

/* What the runtime does for it. Set when it starts; NULL: it does not track. `darken`: as the marker does with
   a pointer that it finds in a field. `forget`: takes the words of [begin, end) out of the remembered set of this
   thread's domain. `more_to_mark`: a region waits, so this thread's domain has not ended its marking any more, and
   calls oh_track_mark before it does; false: it cannot, as when marking has ended (NULL: never), and regions are
   darkened when they are met, in one piece. */
struct oh_track_runtime {
  void (*darken)(uintptr_t v);
  void (*forget)(uintptr_t begin, uintptr_t end);
  bool (*more_to_mark)(void);
};
extern struct oh_track_runtime oh_track_runtime;

/* Everything tracked lies below it; 0: there is nothing. */
extern uintptr_t oh_track_limit;

/* Begins to track memory in chunks of kind OH_KIND_REGION, which are whole chunks of its own. None of its words holds a
   pointer to outside. It counts as met in this cycle. The caller's domain is not stopped. False: no memory. */
bool oh_track_add(uintptr_t base, size_t bytes);

/* Ends that, and forgets the slots; what waits is darkened now. All other domains are stopped, and none has a word of
   it in its remembered set. */
void oh_track_remove(uintptr_t base);

/* Is it a root when marking begins the next time? Between cycles, or by a thread whose domain is not stopped. */
void oh_track_keep(uintptr_t base, bool kept);

/* The number of bits that are set. Cost: linear in the size of the region, divided by some thousands, and in that. */
size_t oh_track_count(uintptr_t base);

/* Between two cycles, while all domains are stopped: regions are not fresh any more. */
void oh_track_turn(void);
/* Marking begins, while all domains are stopped and nothing is darkened yet: nothing is met. */
void oh_track_cycle(void);
/* One domain darkens what those hold that are kept; the others are stopped or do the same with other roots. */
void oh_track_roots(void);
/* Is there a region that waits? */
extern struct oh_track *oh_track_waiting;
static inline bool oh_track_is_waiting(void) { return oh_load_relaxed(&oh_track_waiting) != NULL; }
/* Darkens what OH_TRACK_PIECE slots hold, at most, of a region that waits; looks at a bounded part of it. Result: the
   work, counted in words that were marked; 0: nothing waits. Regions stay in the caller's hands, which are empty (NULL)
   at first, until all is done or they are left, before the next poll. By a thread whose domain has not ended its
   marking, and does not end it before both its hands and the list are empty. */
enum { OH_TRACK_PIECE = 1024 };
size_t oh_track_mark(struct oh_track **hands);
void oh_track_leave(struct oh_track *hands);
/* Darkens some of what a region's slots hold, if the region waits: 4,096 of them, or nothing in a part of a few MiB.
   True: not all of it yet. So a caller who lets others go on between two calls has it darkened before it stops them. */
bool oh_track_hasten(uintptr_t base);
/* Calls a function for each slot with a pointer to the major heap. All domains are stopped. */
void oh_track_each(void (*f)(void *data, uintptr_t v, uintptr_t *slot), void *data);

void oh_track_wrote_slow(uintptr_t slot, uintptr_t v);
void oh_track_meet_slow(uintptr_t address);
bool oh_track_is_unmet_slow(uintptr_t address);

/* A word was stored somewhere. By the thread that did it, before its domain can be stopped. */
static inline void oh_track_wrote(uintptr_t slot, uintptr_t v)
{
  if (__builtin_expect(slot < oh_load_relaxed(&oh_track_limit), 0)) oh_track_wrote_slow(slot, v);
}

/* The marker, or whoever stands in for it, met a pointer to a region. The thread has a domain, which is not stopped for
   a minor collection or compaction. */
static inline void oh_track_meet(uintptr_t address)
{
  if (__builtin_expect(address < oh_load_relaxed(&oh_track_limit), 0)) oh_track_meet_slow(address);
}

/* Is this a pointer to a tracked region that was not met in this cycle? When marking has ended, nothing leads there but
   weak pointers, as with a block that is not marked. */
static inline bool oh_track_is_unmet(uintptr_t address)
{
  return __builtin_expect(address < oh_load_relaxed(&oh_track_limit), 0) && oh_track_is_unmet_slow(address);
}

#endif
