/* SPDX-License-Identifier: MIT */
/* Settings, from the environment variable OUTHEAP: a list of name=value separated by commas, read once, when the
   library starts; not in a program with more rights than its caller, which says so. A name may have a group before it,
   and a dot between. A SIZE is in bytes, or has a suffix K (or k), M, G, T. A TIME has at most seven digits and a unit,
   us, ms or s.

     thp=off|advise|always      huge pages for OCaml's heap (default advise); thp.young=, thp.pools=, thp.blocks= for a
                                part of it
     hugetlb=off                the heap takes no pages of the system's pool of huge pages (default)
     hugetlb=2M                 it does, for what thp= names, as far as they last, and ordinary pages after that
                                (hugetlb.h; Linux 5.16)
     thp.from=SIZE              with `advise`: the size of a space from which it gets huge pages (default 8M)
     reserve=SIZE               address space reserved at start (outheap_reserve)
     keep=SIZE                  free memory that each space keeps at least instead of purging it (default 4M where it
                                has huge pages, else 32M)
     keep.share=PERCENT         the same, in percent of what is in use (default 5; 10)
     slack=PERCENT              free memory that each space keeps until it has not been needed for an epoch, in percent
                                of what is in use (default 7; 100). An epoch lasts until as much has been allocated as
                                is in use. With 0, everything beyond `keep` is purged at once
     opaque=1                   memory that is neither the heap's nor declared is never looked at (header.h): see
                                outheap_set_opaque
     minor=fixed                the size of minor heaps is what the program and OCAMLRUNPARAM say (default)
     minor=adaptive[:MIN-MAX]   each domain's minor heap grows and shrinks by itself, from MIN to MAX words (minor.h;
                                default 32k-8M). It begins with what OCAMLRUNPARAM says; a size that the program sets
                                with Gc.set stays
     minor.pause=TIME           with minor=adaptive: how long a pause may be before the minor heap is made smaller, such
                                as 5ms, 500us, 1s (default: as long as it is)
     memory=follow              free memory goes back by itself, with OCaml 5: the heap is compacted when that is worth
                                it, collected when time has passed, or when the program is idle (pace.h, reclaim.h;
                                default)
     memory=stock               memory goes back when it is asked for, as with the stock runtime: no thread, no cycle,
                                no compaction that the program did not cause
     memory=small               the same; and in cycles in which the helper takes part, and keeps pace, space_overhead
                                is half of what the program asks for
     memory.pause=TIME          how long a compaction that nobody asked for may take at most, as predicted, while the
                                program runs (default 10ms)
     memory.idle=TIME|off       how long the program must do nothing before it is collected (default 2s)
     memory.idle.pause=TIME     as memory.pause, in a program that is idle (default 30ms)
     memory.floor=SIZE|PERCENT%|auto
                                OCaml 5: a domain whose heap is smaller is not collected for the sake of its allocation
                                (default 0): bytes; a part of what is available when the program starts; auto: 6 %, at
                                most 512M (limit.h)
     limit=SIZE|PERCENT%|cgroup a soft limit on the memory of the process, with OCaml 5: bytes; a part of what the
                                machine and the control group allow; 95 % of what the control group allows (limit.h)
     helper=off                 the domains collect by themselves (default)
     helper=on                  a thread of its own, the helper, does most of the marking of the major heap (OCaml 5.4
                                and 5.5 on x86-64; elsewhere the setting is refused)
     helper=auto                the same when there is a processor for it: the heap has 4 MB or more, the process may
                                use more processors than domains run, and the helper gets most of one
     warn=1                     says it once when the system refuses the heap's part of the address space, memory, or
                                huge pages (base.h); these refusals are counted in any case
     stats=1                    prints statistics at exit
     stats.signal=SIGNAL        prints them when the process gets this signal (USR1, USR2, HUP, URG, WINCH, or a number)
     stats.every=SECONDS        prints them at intervals; both until outheap_stop_helper
     stats.to=FILE|fd:N         where to: appended to a file, or written to a descriptor (default: standard error)

   To find faults, and for experiments:

     check=move:N|off           in the flavour that checks (overlay/ocaml5-check/trap.h): of N places where C code may
                                collect, one does, on average (default move:2); or no checks
     check.seed=N               which of them (default 1)
     check.cycle=N              one of N of these collections is a major cycle (default 20; 0: none)
     check.go=1                 the program goes on after a fault
     check.report=FILE          reports are appended to FILE (default: standard error)
     check.ring=SIZE            addresses of each domain's minor heap (default 1G)
     check.large=SIZE           addresses of large blocks that were left and stay inaccessible, without their memory
                                (default 1G)
     debug.report=N             report on naked pointers: prints every Nth, and the count at exit (not with dependency
                                ordering: table.h)
     debug.faults=off|report    with `report`, a write to a region or a read of a revoked one is reported before the
                                process dies (default: report with a debug runtime, else off)
     debug.slices=1             with the variant _outheap_count: what each slice of marking saw goes where statistics go
     debug.marking=range|table  OCaml 5: how the marking loop looks at words (default range: see table.h)
     debug.clock=machine|step   with `step` a test of this library drives the time by which memory goes back (default
                                machine; clock.h)
     debug.compact=1            OCaml 5.2 and later: every cycle of the collector ends with a compaction; and
                                an idle program is collected however long that took last time
     debug.stack=SIZE           how long the helper's mark stack may become before it rests for a cycle (default: an
                                eighth of the heap, but at least 1M)
     debug.base=ADDRESS         where to place the heap (hexadecimal)

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

/* Free memory that is kept: bytes; percent; percent. */
struct oh_settings_free { size_t keep, keep_share, slack; };

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
  size_t thp_from, reserve, report, stats_every;
  uintptr_t base;
  size_t minor_least, minor_most; /* words */
  enum oh_settings_helper helper;
  size_t helper_stack;            /* bytes; 0: as the heap's size says */
  uint64_t pause;                 /* nanoseconds; 0: no limit */
  uint64_t compact_pause, idle, idle_pause; /* nanoseconds; idle = 0: never */
  size_t floor;                   /* bytes; oh_limit_start finds them if it is a share */
  size_t floor_percent, floor_most; /* of what is available, and bytes at most; 0: no share */
  struct oh_settings_limit limit;
  struct oh_settings_check check;
  bool reclaim, frugal, compact;   /* memory=follow or small; memory=small; debug.compact */
  bool steps;                     /* debug.clock=step */
  int stats_signal;   /* 0: none */
  bool opaque, stats, marking_table, warn, slices, minor_adaptive;
  bool hugetlb;
  bool thp_asked;     /* huge pages are the user's wish, not the default */
  char stats_to[200]; /* a file, or fd:N; empty: standard error */
};
extern struct oh_settings oh_settings; /* only read after oh_start */

/* Changes the settings by such a list; NULL: none. */
void oh_settings_read(char const *list);

#endif
