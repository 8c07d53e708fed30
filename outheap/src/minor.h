/* SPDX-License-Identifier: MIT */
/* The size of a minor heap that adapts itself (setting `minor=adaptive`): when it should grow or shrink. The runtime's
   side, which does it, is in the overlay.

   A *window* is some collections in a row. From it come the *share* of the time that went into minor collections, and
   their *cost*: the time for each word that the program allocated, in the cheapest collection, since others may have
   been interrupted. It has a fixed part, for roots and remembered set, and a part for what survives; both become less
   with a larger heap, or do not.

     the share is large               the heap doubles; beyond OH_MINOR_EASY only as long as that makes the cost much
                                      less: otherwise it goes back, and waits longer and longer before the next attempt
     the share is tiny for long       it halves: there is nothing to gain from the memory
     others collect, and this domain  it becomes a quarter: the domain is idle
     has hardly allocated, for long

   All minor heaps together grow to OH_MINOR_ALL times the largest size at most.

   A record belongs to one domain and is used by one thread at a time. */
#ifndef OH_MINOR_H
#define OH_MINOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OH_MINOR_ALL 8
#define OH_MINOR_EASY ((size_t)1 << 20) /* words: what the processor's caches hold well */

struct oh_minor {
  uint64_t began, ended;      /* the last collection, in nanoseconds; 0: there was none */
  uint64_t whole, collecting; /* in this window: nanoseconds, and those in collections */
  size_t allocated;           /* words */
  unsigned collections;
  double cost;             /* the least: nanoseconds for a word */
  double before;           /* the cost before the heap doubled beyond what is easy, until that is judged; else 0 */
  unsigned wait, patience; /* windows until the next attempt; and after the next one that fails */
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

/* What became of it: the size is `after` now. Neither more nor less: it was refused. */
void oh_minor_changed(struct oh_minor *, size_t before, size_t after);

/* Account of all minor heaps, in words: one has changed its size (0: it is gone). Any thread. */
void oh_minor_account(size_t before, size_t after);
/* May one grow by so many words? */
bool oh_minor_allows(size_t more);

#endif
