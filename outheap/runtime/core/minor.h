/* SPDX-License-Identifier: MIT */
/* The size of a minor heap that adapts itself (setting `minor=adaptive`): when it should grow or shrink. The runtime's
   side, which does it, is in the overlay.

   A *window* is some collections in a row, of a heap that was full: of blocks, or of remembered stores into old ones.
   From it come the *share* of the time that went into minor collections, and the *cost*: the time for each word that
   the program allocated. A larger heap has fewer collections, promotes less, and so marks less; but the program runs
   slower when the heap is too large for the processor's caches. Only the cost tells what prevails. What is promoted
   costs work of the major collector later, often in windows of another size: so in place of the slices that fall into
   the window, both have what slices cost for each word that came to the major heap, in the long run.

     the share is large               the heap doubles, up to OH_MINOR_EASY
     beyond that, at first            it doubles while that is expected to save a part of the time worth the memory: as
                                      much of the promoted words as the last doubling
     later                            a *trial*: windows with the smaller and with the larger size in turn, as small,
                                      large, large, small. The heap becomes as large if that is worth it, and as small
                                      otherwise. Trials upwards and downwards; they become rare when nothing changes
     the share is tiny for long       it halves: there is nothing to gain from the memory
     others collect, and this domain  it becomes a quarter: the domain is idle
     has hardly allocated, for long
     a pause is longer than it may    it halves (setting `minor=adaptive:TIME`), unless that does not make pauses
                                      shorter: what is long then is a stack, or roots. It does not grow to where pauses
                                      would be too long

   A *pause* is a minor collection, or a slice of the major one. A slice counts as twice what the words that were
   promoted before it cost in the long run, at most: a longer one has another reason than the size of the minor heap.
   The collection after the heap has grown does not count: the program has just touched new memory.
   All minor heaps together grow to OH_MINOR_ALL times the largest size at most.

   A record belongs to one domain and is used by one thread at a time. */
#ifndef OH_MINOR_H
#define OH_MINOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OH_MINOR_ALL 4
#define OH_MINOR_EASY ((size_t)1 << 18) /* words: what any processor's caches hold well */
#define OH_MINOR_ROWS 8                 /* of windows in a trial, at most */

struct oh_minor {
  uint64_t began, used;       /* the last collection, in nanoseconds; used = 0: there was none */
  bool alone, remembered;     /* and what it was */
  uint64_t slices;            /* nanoseconds since it ended */
  size_t promoted;            /* words, by the last collection */
  struct {
    uint64_t whole, collecting, slices; /* nanoseconds; those in collections, and in slices of the major collector */
    size_t allocated, promoted, major;  /* words: of the program; to the major heap, and all that came to be there */
    size_t filled;                      /* words of heaps that were full for either reason */
    unsigned collections;
  } window;
  double slices_ns, major_words; /* of windows in the past, the older the less: what a word in the major heap costs */
  size_t small, large;           /* words, in a trial; large = 0: there is none */
  unsigned step;                 /* windows of the trial that are over, less than 4 * OH_MINOR_ROWS */
  struct { double cost, share, promoted; } row[2]; /* in this row, of two windows: of small, of large */
  double predicted;              /* of all rows together: large to small */
  double ratio[OH_MINOR_ROWS];   /* of each row that is over: large to small */
  bool upwards;                  /* the trial, or the next one */
  bool fresh;                    /* it has just grown */
  unsigned wait, patience;       /* windows until the next trial; and after the next one that changes nothing */
  uint64_t quiet;          /* nanoseconds with a tiny share */
  unsigned idle;           /* collections in which hardly anything was allocated */
  double before;           /* the share of promoted words before it last doubled; 0: not known */
  double at;               /* and when it was settled that this is enough */
  unsigned settled;        /* windows since then; 0: not yet */
  double pause_word;       /* nanoseconds for each word of the size: the longest pause, the older the less */
  uint64_t over;           /* nanoseconds: a pause that was too long */
  uint64_t probe;          /* the same, when the heap has been made smaller for it */
  unsigned helpless;       /* windows in which pauses do not count */
};

/* What a collection found. */
struct oh_minor_collection {
  size_t words;      /* the size of the minor heap */
  size_t allocated;  /* words of it */
  size_t promoted;   /* of these, to the major heap */
  size_t major;      /* words that came to the major heap since the last collection, these included */
  bool remembered;   /* the remembered set was full */
  bool alone;        /* no other domain runs, so that a collection of a heap that is not full was asked for */
  uint64_t used;     /* nanoseconds of processor time of the process, or, if it is not alone, those of the clock */
};

struct oh_minor_counters { size_t grown, shrunk, refused; };
extern struct oh_minor_counters oh_minor_counters;

/* A collection begins; and ends; a slice of the major collector has taken so long. All times are those of `used`. What
   other processes do is in no cost, and in no pause: with them the same size costs twice as much from window to window.
   Among several domains there is no such time for each of them, since threads change domain. */
void oh_minor_begin(struct oh_minor *, uint64_t used);
void oh_minor_end(struct oh_minor *, struct oh_minor_collection const *);
void oh_minor_slice(struct oh_minor *, size_t words, uint64_t took);

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
