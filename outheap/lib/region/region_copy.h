/* SPDX-License-Identifier: MIT */
/* Copying a value, with all that it refers to, into memory of its own: breadth first, without recursion; sharing and
   cycles are kept.

   The copied memory is a row of blocks, header by header, from `start` to `used`; all headers are black. The last word
   is the header of an empty block, so that no pointer leads to the end of the memory. While it is being made:
     blocks before `scan` have fields that lead into the copy (or stay: immediates, static blocks, needed images); of
     those from `scan` on, fields are as in the source;
     log[i] is the source of the ith block if its header was replaced by the place of the copy, and 0 otherwise (blocks
     that the collector does not mark, whose place is in `table`; what a bigarray holds; padding). The copy's header has
     the source's colour until it is put back.
   Nobody else runs OCaml code meanwhile (region_alone.h), so the source's headers can be used, and are put back in
   every case. What takes longer than 2 ms is made by a second process instead, in its copy of the program's memory
   (region_second.h), if there is somebody who would have to wait. */
#ifndef OUTHEAP_REGION_COPY_H
#define OUTHEAP_REGION_COPY_H

#include "region_addresses.h"
#include "region_error.h"
#include "region_second.h"
#include "region_table.h"
#include "region_vector.h"

struct outheap_region_copy {
  /* given */
  value *root;       /* a place that the collector knows */
  bool closures;     /* closures and objects are copied, too; static ones stay */
  bool lazies;       /* so are lazy values that are not forced */
  bool for_image;    /* what must stay is refused */
  bool exclusive;    /* all others wait until it is done */
  size_t start;      /* bytes to leave free at the beginning: a multiple of a word */
  uintptr_t const *stay; /* pairs [begin, end): pointers to there are kept */
  size_t stay_count;
  struct caml_ba_proxy *proxy; /* of bigarrays (region_custom.h). NULL: one in the copy's own memory, at `proxy_at` */
  size_t proxy_at;
  /* found */
  struct outheap_region_addresses extent;
  char *base;
  size_t used, mapped, blocks;
  value copied; /* the root's copy */
  struct outheap_region_error error;
  char *obstacle; /* where something else lies; NULL: nothing */
  /* during the copy */
  uint64_t until; /* when to leave the rest to a second process; 0: never */
  bool left;      /* that was done: memory and headers are as before */
  struct outheap_region_second second;
  int file; /* in the second process, the copy's memory; otherwise -1 */
  size_t scan, chunk;
  struct outheap_region_vector log;
  struct outheap_region_table table;
};

/* True: base, used, mapped, blocks and copied are set; the memory is readable and writable. False: error is set, and
   nothing is left behind. The caller holds OCaml's lock, which may be released meanwhile; the copy is that of a moment.
   `waited`: nanoseconds in which other domains stood still, the last time. */
bool outheap_region_copy_make(struct outheap_region_copy *, uint64_t *waited);

/* Since the program began: copies made by a second process; the longest time in which others waited (nanoseconds). */
struct outheap_region_copy_counts { uint64_t second, longest; };
struct outheap_region_copy_counts outheap_region_copy_count(void);

/* Returns the memory of a copy. */
void outheap_region_copy_drop(struct outheap_region_copy *);

#endif
