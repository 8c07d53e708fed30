/* SPDX-License-Identifier: MIT */
/* The checked build: places in the program, for messages. */
#ifndef BXR_SITE_H
#define BXR_SITE_H

#include "atomic.h"

#if BOXROOT_DEBUG
/* Where a call came from: a line of a file, or else (file == NULL) the return address; unknown: all NULL and 0. */
typedef struct bxr_site {
  char const *file;
  void const *address;
  int line;
} bxr_site;

/* The place in words, in `text`, which is returned. */
enum { BXR_SITE_TEXT = 400 };
BXR_INTERNAL char const *bxr_site_text(bxr_site s, char text[BXR_SITE_TEXT]);

static inline bool bxr_site_is_known(bxr_site s) { return s.file != NULL || s.address != NULL; }

/* The return addresses of the calls that this thread is in, innermost first, at most `most`; how many. 0 where the C
   library cannot tell. Takes microseconds, and may allocate at its first use. */
BXR_INTERNAL int bxr_site_calls(void **addresses, int most);

/* Prints the n places on the standard error output, a line each: how often, `what`, where; the most frequent first.
   Two are the same when file (its name: each object has a constant of its own) and line are, or the address. Sorts
   them, and merges those that are the same. */
typedef struct bxr_site_count {
  bxr_site site;
  uint64_t count;
} bxr_site_count;
BXR_INTERNAL void bxr_site_print_counts(bxr_site_count *places, size_t n, char const *what);

/* A place that several threads may read and write at the same time. A reader that races with a writer may get parts of
   two places. */
static inline bxr_site bxr_site_load(bxr_site const *s)
{
  return (bxr_site){ bxr_load_relaxed(&s->file), bxr_load_relaxed(&s->address), bxr_load_relaxed(&s->line) };
}
static inline void bxr_site_store(bxr_site *to, bxr_site s)
{
  bxr_store_relaxed(&to->file, s.file);
  bxr_store_relaxed(&to->address, s.address);
  bxr_store_relaxed(&to->line, s.line);
}
#endif

#endif
