/* SPDX-License-Identifier: MIT */
/* Checked build: where calls of public functions come from. */
#ifndef BXR_SITE_H
#define BXR_SITE_H

#include "../base.h"

#if BOXROOT_DEBUG
/* A site is where a call came from: a line of a file, or else (file == NULL) the return address. Where it is unknown
   all fields are NULL and 0. */
typedef struct bxr_site {
  char const *file;
  void const *address;
  int line;
} bxr_site;

/* How many roots were created there. */
typedef struct bxr_site_count {
  bxr_site site;
  uint64_t count;
} bxr_site_count;

/* Is the site known? Does it stand for roots that the library makes for itself? */
static inline bool bxr_site_is_known(bxr_site s) { return s.file != NULL || s.address != NULL; }
static inline bool bxr_site_is_own(bxr_site s) { return s.line == -1; }

/* Writes the site in words to `text`, which is returned. */
enum { BXR_SITE_TEXT = 400 };
BXR_INTERNAL char const *bxr_site_text(bxr_site s, char text[BXR_SITE_TEXT]);

/* Prints the n sites on the standard error output, a line each: how often, `what`, where; the most frequent first.
   Sorts the sites, and merges equal ones. Two sites are equal when their files, compared by name, and their lines are
   equal, or their addresses. */
BXR_INTERNAL void bxr_site_print(bxr_site_count *sites, size_t n, char const *what);

/* --- the public call that this thread is in ----------------------------------------------------------------------- */

typedef struct bxr_site_call {
  bxr_site site;
  char const *function;
} bxr_site_call;

/* Every public function begins with BXR_CALL: the call is the one that this thread is in until the function returns. A
   signal handler or a finaliser may make a call within another one. */
#define BXR_CALL_AS(name)                                                  \
  bxr_site_call bxr_outer __attribute__((cleanup(bxr_site_leave), unused)) = \
    bxr_site_enter((name), __builtin_return_address(0))
#define BXR_CALL BXR_CALL_AS(__func__)

/* A call of `function` begins, that will return to `address`, and comes from where bxr_called_from said, if it did. The
   result is the call around it, if any, which is to be given to bxr_site_leave. bxr_site_enter_own: the library begins
   to make a root for itself. */
BXR_INTERNAL bxr_site_call bxr_site_enter(char const *function, void const *address);
BXR_INTERNAL bxr_site_call bxr_site_enter_own(void);
BXR_INTERNAL void bxr_site_leave(bxr_site_call *outer);

/* The call that this thread is in; its function, and its site in words. */
BXR_INTERNAL bxr_site_call bxr_site_current(void);
BXR_INTERNAL char const *bxr_site_function(void);
BXR_INTERNAL char const *bxr_site_here(char text[BXR_SITE_TEXT]);

#else
#define BXR_CALL ((void)0)
#endif

#endif
