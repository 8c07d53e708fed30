/* SPDX-License-Identifier: MIT */
/* The size of a minor heap that adapts itself (setting `minor=adaptive`): when it should grow or shrink. The runtime's
   side, which does it, is in the overlay.

   A *window* is some collections in a row. From it come the *share* of the time that went into minor collections, and
   the *cost*: the whole time for each word that the program allocated. A larger heap has fewer collections, promotes
   less, and so marks less; but the program runs slower when the heap is too large for the processor's caches. Only the
   cost tells what prevails.

     the share is large               the heap doubles, up to OH_MINOR_EASY
     beyond that                      a *trial*: windows with the smaller and with the larger size in turn, as small,
                                      large, large, small. The heap becomes as large if that is worth it, and as small
                                      otherwise. Trials upwards and downwards; they become rare when nothing changes
     the share is tiny for long       it halves: there is nothing to gain from the memory
     others collect, and this domain  it becomes a quarter: the domain is idle
     has hardly allocated, for long

   The collection after the heap has grown does not count: the program has just touched new memory.
   All minor heaps together grow to OH_MINOR_ALL times the largest size at most.

   A record belongs to one domain and is used by one thread at a time. */
#ifndef OH_MINOR_H
#define OH_MINOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OH_MINOR_ALL 8
#define OH_MINOR_EASY ((size_t)1 << 20) /* words: what the processor's caches hold well */
#define OH_MINOR_ROWS 8                 /* of windows in a trial, at most */

struct oh_minor {
  uint64_t began, ended;      /* the last collection, in nanoseconds; 0: there was none */
  uint64_t whole, collecting; /* in this window: nanoseconds, and those in collections */
  size_t allocated;           /* words */
  unsigned collections;
  size_t small, large;           /* words, in a trial; large = 0: there is none */
  unsigned step;                 /* windows of the trial that are over, less than 4 * OH_MINOR_ROWS */
  double cost[2];                /* in this row: of small, of large */
  double ratio[OH_MINOR_ROWS];   /* of each row that is over: large to small */
  bool upwards;                  /* the trial, or the next one */
  bool fresh;                    /* it has just grown */
  unsigned wait, patience;       /* windows until the next trial; and after the next one that changes nothing */
  uint64_t quiet;          /* nanoseconds with a tiny share */
  unsigned idle;           /* collections in which hardly anything was allocated */
};

struct oh_minor_counters { size_t grown, shrunk, refused; };
extern struct oh_minor_counters oh_minor_counters;

/* A collection begins; and ends, at times in nanoseconds. `words`: the size of the minor heap, of which so many were
   `allocated`. `alone`: no other domain runs, so that a collection with half of the heap free was asked for. */
void oh_minor_begin(struct oh_minor *, uint64_t now);
void oh_minor_end(struct oh_minor *, uint64_t now, size_t allocated, size_t words, bool alone);

/* The size that is wanted now for a heap of so many words: this one, or another one between the least and the largest
   of the settings. */
size_t oh_minor_choose(struct oh_minor *, size_t words);

/* Is a trial under way? Then the larger of its sizes comes back soon, and its memory should stay. */
static inline bool oh_minor_tries(struct oh_minor const *m) { return m->large != 0; }

/* What became of it: the size is `after` now. Neither more nor less: it was refused. */
void oh_minor_changed(struct oh_minor *, size_t before, size_t after);

/* Account of all minor heaps, in words: one has changed its size (0: it is gone). Any thread. */
void oh_minor_account(size_t before, size_t after);
/* May one grow by so many words? */
bool oh_minor_allows(size_t more);

#endif
