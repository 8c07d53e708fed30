/* SPDX-License-Identifier: MIT */
/* Settings: lists of name=value separated by commas, read once, when the library starts. They are the defaults of the
   variant (outheap-build --defaults), those of the executable (outheap_defaults in outheap.h), and the environment
   variable OUTHEAP, but that not in a program with more rights than its caller, which says so. Of several values the
   last counts. docs/reference/settings.md says what each of them means. What only some users need is a part of the
   value (keep=SIZE:PERCENT%); what serves tests and the search for faults is in the group `debug`.

   An unknown name or a bad value is reported once on standard error, with what is possible, and otherwise ignored. */
#ifndef OH_SETTINGS_H
#define OH_SETTINGS_H

#include "page.h"

enum oh_settings_thp {
  OH_SETTINGS_THP_OFF,    /* never */
  OH_SETTINGS_THP_ADVISE, /* for the whole space once it has grown to oh_settings.thp_from bytes */
  OH_SETTINGS_THP_ALWAYS  /* from the first page */
};

enum oh_settings_limit_kind {
  OH_SETTINGS_LIMIT_NONE,
  OH_SETTINGS_LIMIT_BYTES,
  OH_SETTINGS_LIMIT_PERCENT,
  OH_SETTINGS_LIMIT_CGROUP
};
struct oh_settings_limit {
  enum oh_settings_limit_kind kind;
  size_t bytes; /* or percent */
};

enum oh_settings_helper { OH_SETTINGS_HELPER_OFF, OH_SETTINGS_HELPER_AUTO, OH_SETTINGS_HELPER_ON };

/* Words: what the runtime allows. */
#define OH_SETTINGS_MINOR_LEAST ((size_t)4096)
#define OH_SETTINGS_MINOR_MOST ((size_t)1 << 28)

/* Free memory that a space keeps instead of purging it, the larger of `keep` bytes and `share` percent of what is in
   use; and the percent that it keeps until they were not needed for an epoch. */
struct oh_settings_free { size_t keep, share, slack; };

/* Of the flavour that checks (overlay/ocaml5-check). `every`: of so many places where C code may collect, one collects,
   on average; `cycle`: of so many of these collections, one is a major cycle in which everything moves; 0: none. */
struct oh_settings_check {
  bool off, go;
  size_t every, cycle, seed;
  size_t ring;      /* bytes of addresses of each domain's minor heap; */
  size_t large;     /* of large blocks that were left */
  char report[200]; /* a file; empty: standard error */
};

struct oh_settings {
  enum oh_settings_thp thp[OH_SPACES];
  struct oh_settings_free small, huge; /* in spaces without and with huge pages */
  size_t thp_from, reserve, report;
  size_t minor_least, minor_most; /* words */
  enum oh_settings_helper helper;
  size_t helper_stack;            /* bytes; 0: as the heap's size says */
  uint64_t pause;                 /* nanoseconds; of minor heaps that adapt themselves; 0: no limit */
  uint64_t compact_pause, idle, idle_pause; /* nanoseconds; idle = 0: never */
  size_t floor;                   /* bytes; oh_limit_start finds them if it is a share */
  size_t floor_percent, floor_most; /* of what is available, and bytes at most; 0: no share */
  struct oh_settings_limit limit;
  struct oh_settings_check check;
  bool reclaim, frugal, compact;   /* memory=follow or small; memory=small; debug.compact */
  bool steps;                     /* debug.clock=step */
  bool show;                      /* debug.settings */
  uint64_t stats_every;           /* nanoseconds; 0: never */
  uint64_t stats_signals;         /* a bit for each */
  bool opaque, stats, marking_table, warn, slices, minor_adaptive;
  bool hugetlb;
  bool thp_asked;     /* huge pages are the user's wish, not the default */
  char stats_to[200]; /* a file, or fd:N; empty: standard error */
};
extern struct oh_settings oh_settings; /* only read after oh_start */

/* Changes the settings by such a list, which messages name; NULL: none. */
void oh_settings_read(char const *list, char const *from);

/* Reads the three lists. `of_caller` is the value of OUTHEAP, which has to stay as it is; NULL: there is none. */
void oh_settings_start(char const *of_caller);

/* The value that counts, as it was given, also where it was refused; `length` bytes of a list. NULL: no list has this
   setting. Needs oh_settings_start. */
char const *oh_settings_value(char const *name, size_t *length);

/* Prints each setting that a list has, and which it is (setting debug.settings). */
void oh_settings_show(void);

#endif
