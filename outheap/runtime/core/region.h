/* SPDX-License-Identifier: MIT */
/* Regions, as the collector sees them: chunks of kind OH_KIND_REGION, which hold values that are neither marked nor
   moved, and of which it can tell whether any pointer still leads there. What a region is made of, and what becomes of
   it, is decided by the library that owns it (outheap.region); here are its chunks, their reach bits, and tracked
   memory: regions that the program writes to.

   The marker comes across a pointer to a region wherever it comes across a pointer to a block of the heap: in roots,
   stacks, fields, in what the deletion barrier darkens. It does not follow it, but sets the chunk's *reach bit*. Keys
   of weak pointers and ephemerons count when they are cleaned, which is before the cycle ends.

     a pointer into a chunk is reachable when marking begins, or is obtained from such a place or by outheap_marker_meet
     from then on   =>   the chunk's reach bit is set when the cycle ends

   (Blocks that are allocated while marking runs are not looked at. But what they point to was reachable when it began,
   or was reached.) So a chunk that was not reached in a whole cycle has no pointer to it, and none can come into being.
   Up to OCaml 5.4 marking begins with the cycle; in 5.5 a cycle first only sweeps. docs/internals/proofs.md has the
   argument in full.

   Chunks with cells (OH_REGION_CELLS) have a bit for each word instead: their first OH_REGION_MAP bytes, and the same
   number after them, are two bitmaps. One of the two is written to. docs/guide/hashcons.md has what that is for. */
#ifndef OH_REGION_H
#define OH_REGION_H

#include "table.h"

/* --- reach bits --------------------------------------------------------------------------------------------------- */

/* Where the marker found the pointer. */
enum oh_region_by { OH_REGION_BY_ROOT = 1, OH_REGION_BY_BLOCK = 2 };

/* For each chunk: from where it was reached since the owner last cleared this byte. Markers store a bit only where it
   is not set yet; two that do so at the same time may lose one of two bits, but never both. In chunks with cells:
   OH_REGION_CELLS, with OH_REGION_SECOND if the second bitmap is the one that is written to; markers never store
   there. */
extern uint8_t oh_region_reach_bits[OH_TABLE_ENTRIES];
enum { OH_REGION_CELLS = 4, OH_REGION_SECOND = 8 };
#define OH_REGION_MAP (OH_CHUNK / 64)

/* Sets the bit of a word of a chunk with cells, whose byte of reach bits is given. */
void oh_region_set_cell_bit(uintptr_t address, uint8_t bits);

/* Pointers to these chunks are counted. */
struct oh_region_watch { uintptr_t begin, size; size_t found; };
extern struct oh_region_watch oh_region_watch;

static inline void oh_region_set_reach_bit(uintptr_t address, enum oh_region_by by)
{
  uint8_t *bits = &oh_region_reach_bits[address >> OH_CHUNK_LOG], b = oh_load_relaxed(bits);
  if (b & OH_REGION_CELLS) {
    oh_region_set_cell_bit(address, b);
    return;
  }
  if ((b & by) == 0) oh_store_relaxed(bits, (uint8_t)(b | by));
  if (__builtin_expect(address - oh_load_relaxed(&oh_region_watch.begin) < oh_load_relaxed(&oh_region_watch.size), 0))
    (void)oh_fetch_add_relaxed(&oh_region_watch.found, 1);
}

/* Functions to be called between two cycles, while all domains are stopped and nothing of the new cycle is marked yet
   (`cycle`), and then by one domain when they run again (`cycled`). Neither may call OCaml or allocate in its heap. The
   record stays for ever. */
struct oh_region_owner { void (*cycle)(void); void (*cycled)(void); struct oh_region_owner *next; };
void oh_region_add_owner(struct oh_region_owner *);

/* For the overlay. Set when the runtime starts, if it calls the three functions: between two cycles; when marking
   begins (at the same moment or later; all domains are stopped, and nothing was darkened since the cycle began); and
   when domains run again after the first. */
extern bool oh_region_has_cycles;
void oh_region_cycle(void);
void oh_region_mark(void);
void oh_region_cycled(void);

/* --- tracked memory ----------------------------------------------------------------------------------------------- */

/* Tracked memory: regions that the program writes to. Their words may come to hold pointers to the heap, so to the
   collector a tracked region is one large block with few fields: the *slots*, words that a pointer to outside of the
   region was stored in. When the marker first reaches the region in a cycle, it darkens what the slots hold; compaction
   updates them. So the region keeps alive what it refers to, and only while it is in use itself: a ring of pointers
   through the heap and back does not keep it.

     a word of the region holds a pointer to outside, and no domain is between that store and oh_track_wrote
                                                                       =>   its bit in `slots` is set
     a bit of `slots` is set   =>   the bit of its group of 64 words in `groups` is set
     reached   <=>   what the slots held was darkened since marking began, or the region is younger than that, or
                     `waits`
     marking has not begun in this cycle   =>   all regions are reached: those that were not have ended
     waits   <=>   slots from number `next_slot` on are not darkened yet: the region is in the list of those that wait,
                   or a marker has it in its hands, between two polls
     some region waits   =>   whoever put it into the list, or back there, was the last of all, and has not ended its
                              marking: so it looks there once more

   So a region is marked as a large block is, a few slots at a time. What a slot loses before the marker comes to it is
   darkened by the deletion barrier; what it gets after the beginning of marking was reachable then, or is marked.

   The marker clears the bit of a slot in which it finds something else. A writer stores the word first and then sets
   the bit, even if it is set; the marker clears the bit first and then looks at the word again. Clearing and setting
   are reads and writes of one word, so one comes before the other: if the bit is set last, it stays set; if it is
   cleared last, the marker sees the store, and sets the bit again.

   Deletion barrier and remembered set are the runtime's own: to it, these words are words of the major heap. */
struct oh_track {
  uintptr_t base, bytes;
  uint64_t *slots;  /* a bit for each word of the region */
  uint64_t *groups; /* a bit for each word of `slots`; never cleared */
  size_t size;      /* bytes of this record, which the bits follow */
  bool reached;
  bool kept;        /* a root: reached when marking begins */
  bool fresh;       /* made in this cycle: so it is a root, too, if marking begins later than the cycle */
  bool waits;
  size_t next_slot;
  struct oh_track *next, *pending;
};

/* What the runtime's overlay does for tracked memory; it sets these functions when the runtime starts.
   `darken`         does what the marker does with a pointer that it finds in a field; NULL: this runtime cannot track;
   `forget`         takes the words of [begin, end) out of the remembered set of this thread's domain;
   `more_to_mark`   says that a region waits: then this thread's domain has not ended its marking any more, and calls
                    oh_track_mark before it does. False: it cannot, since all marking of this cycle has ended. Where it
                    cannot, and where the function is NULL, a region is darkened in one piece when it is reached. */
struct oh_track_runtime {
  void (*darken)(uintptr_t v);
  void (*forget)(uintptr_t begin, uintptr_t end);
  bool (*more_to_mark)(void);
};
extern struct oh_track_runtime oh_track_runtime;

/* Everything tracked lies below it; 0: there is nothing. */
extern uintptr_t oh_track_limit;

/* Begins to track memory in chunks of kind OH_KIND_REGION, which are whole chunks of its own. None of its words holds a
   pointer to outside. It counts as reached in this cycle. The caller's domain is not stopped. False: no memory. */
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
/* Marking begins, while all domains are stopped and nothing is darkened yet: nothing is reached. */
void oh_track_cycle(void);
/* For the overlay. One domain darkens what those hold that are roots; the others are stopped or do the same with other
   roots. */
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
void oh_track_reach_slow(uintptr_t address);
bool oh_track_is_unreached_slow(uintptr_t address);

/* A word was stored somewhere. By the thread that did it, before its domain can be stopped. */
static inline void oh_track_wrote(uintptr_t slot, uintptr_t v)
{
  if (__builtin_expect(slot < oh_load_relaxed(&oh_track_limit), 0)) oh_track_wrote_slow(slot, v);
}

/* The marker, or whoever stands in for it, found a pointer to a region. The thread has a domain, which is not stopped
   for a minor collection or compaction. */
static inline void oh_track_reach(uintptr_t address)
{
  if (__builtin_expect(address < oh_load_relaxed(&oh_track_limit), 0)) oh_track_reach_slow(address);
}

/* Is this a pointer to a tracked region that was not reached since marking began? When marking has ended, nothing leads
   there but weak pointers, as with a block that is not marked. */
static inline bool oh_track_is_unreached(uintptr_t address)
{
  return __builtin_expect(address < oh_load_relaxed(&oh_track_limit), 0) && oh_track_is_unreached_slow(address);
}

/* A pointer to a region is found: sets the reach bit, and darkens what a tracked region refers to. */
static inline void oh_region_reach(uintptr_t address, enum oh_region_by by)
{
  oh_region_set_reach_bit(address, by);
  oh_track_reach(address);
}

#endif
