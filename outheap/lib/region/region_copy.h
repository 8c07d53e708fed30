/* SPDX-License-Identifier: MIT */
/* Copying a value, with all that it refers to, into memory of its own: breadth first, without recursion; sharing and
   cycles are kept. When others are stopped for it, and how long, is the business of region_snapshot.h.

   The copied memory is a sequence of blocks, header by header, from `start` to `used`; all headers are black. The last
   word is the header of an empty block, so that no pointer leads to the end of the memory. While the copy is being
   made:
     blocks before `scan` have fields that lead into the copy (or stay: immediates, static blocks, needed images); of
     those from `scan` on, fields are as in the source;
     log[i] is the source of the ith block if its header was replaced by a forwarding header, and 0 otherwise (blocks
     that the collector does not mark, whose copy is found in `table`; what a bigarray holds; padding). The copy's
     header has the source's colour until that is put back.
   Nobody else runs OCaml code meanwhile, so the source's headers can be used, and they are put back in every case. */
#ifndef OUTHEAP_REGION_COPY_H
#define OUTHEAP_REGION_COPY_H

#include "region_addresses.h"
#include "region_runtime.h"

#define OUTHEAP_REGION_COPY_MAX ((size_t)1 << 40) /* bytes of one copy */

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
  struct caml_ba_proxy *proxy; /* of bigarrays (region_runtime.h). NULL: one in the copy's own memory, at `proxy_at` */
  size_t proxy_at;
  /* found */
  struct outheap_region_addresses extent;
  char *base;
  size_t used, mapped, blocks;
  value copied; /* the root's copy */
  struct outheap_region_error error;
  char *obstacle; /* where something else lies; NULL: nothing */
  /* during the copy */
  uint64_t deadline; /* when to hand the copy over to a second process; 0: never */
  bool handed_over;  /* that was done: memory and headers are as before */
  struct outheap_region_second second;
  int file; /* in the second process, the copy's memory; otherwise -1 */
  size_t scan, chunk;
  struct outheap_region_vector log;
  struct outheap_region_table table;
};

/* Makes the copy at c->base, where nothing is mapped yet, while nobody else runs OCaml code. Sets `error`, or `used`,
   `mapped`, `blocks` and `copied`; or sets `handed_over`, when the deadline has passed. The memory is readable and
   writable. Allocates no memory with malloc. */
void outheap_region_copy_run(struct outheap_region_copy *c);

/* Maps `bytes` more of the copy's memory, behind what is mapped. Returns false with errno. */
bool outheap_region_copy_map_more(struct outheap_region_copy *c, size_t bytes);

/* Unmaps all of it. */
void outheap_region_copy_unmap(struct outheap_region_copy *c);

#endif
