/* SPDX-License-Identifier: MIT */
/* Regions: their records, what keeps them alive, and their end.

   A region is LIVE, and then ends in one of three ways:
     unused    no pointer to it was met in a whole cycle, no handle is left, and no live region needs it
     deleted   outheap_region_record_delete: no pointer to it was met in a whole cycle, though there are handles
     revoked   outheap_region_record_revoke: at once; its memory becomes inaccessible, its addresses are never used
               again
   A region that is written to (tracked) may hold pointers to the heap, which count while it is LIVE; with handles it is
   a root of the collector.
   What is unused or deleted becomes DEAD while the world is stopped. Its memory is returned soon after (EMPTY); its
   addresses are free for other regions after one more cycle in which no pointer to them was met.

     handles = OCaml handles + live regions that need it + calls that are using the record
     LIVE, DEAD or EMPTY  <=>  a cycle looks at it (`index` is its place);   REVOKED: never freed
     not over  <=>  it owns the chunks of [base, base + bytes) in region_addresses.h
     a record is freed when it is over and handles = 0;   only between two cycles, while the world is stopped, can one
     become over: so whoever finds one by its address, with OCaml's lock, can read it until it gives the lock away
     state = LIVE or DEAD  =>  [base, base + bytes) is mapped

   Nothing here takes time linear in the number of regions, but a cycle, which reads a byte and a record for each.

   Locks: one for all records. It is held shortly, never while OCaml's lock is waited for, and above that of
   region_addresses.h. */
#ifndef OUTHEAP_REGION_RECORD_H
#define OUTHEAP_REGION_RECORD_H

#include "region_addresses.h"
#include "region_error.h"

#define OUTHEAP_REGION_RECORD_MOST 32768 /* regions at a time */

enum outheap_region_record_state {
  OUTHEAP_REGION_LIVE, OUTHEAP_REGION_DEAD, OUTHEAP_REGION_EMPTY, OUTHEAP_REGION_REVOKED
};

struct outheap_region_record {
  /* what each cycle reads: a line of the cache */
  enum outheap_region_record_state state;
  bool tracked; /* written to: a fate of its own in the runtime (region_marker.h) */
  bool over;
  bool is_image, owns_proxy /* malloc */;
  size_t handles, needed; /* live regions that need it, a part of `handles` */
  size_t pins;            /* calls that read its memory, a part of `handles`: it does not end meanwhile */
  struct caml_ba_proxy *proxy; /* of its bigarrays (region_custom.h); NULL: it has none */
  char *base;
  size_t bytes; /* mapped; whole system pages */

  size_t index;
  struct outheap_region_addresses extent;
  size_t used;   /* of `bytes`, those of blocks and what precedes them */
  size_t blocks; /* 0: not counted (images) */
  bool weighed;  /* outheap_region_record_weigh */
  enum { OUTHEAP_REGION_NO_DELETION, OUTHEAP_REGION_ASKED, OUTHEAP_REGION_ARMED, OUTHEAP_REGION_DONE,
         OUTHEAP_REGION_REFUSED_DELETION } deletion;
  unsigned met_by; /* of a refused deletion */
  size_t pointers;
  uintptr_t root; /* its value */
  struct outheap_region_record *next; /* one that is DEAD: the next of these */
  /* of images */
  unsigned char digest[16];
  struct outheap_region_record *same; /* one that is found by its digest: the next one with the same hash */
  uintptr_t canonical; /* the address that the image was written for */
  char schema[128];
  uint64_t version;
  size_t need_count;
  struct outheap_region_record **needs; /* malloc */
};

/* A record for a mapped, declared piece of memory, with one handle: `r` is copied. The runtime must not have met a
   pointer to it. NULL with an error: too many regions, no memory. For an image that others may have mapped meanwhile,
   the result is the record that is there, if it is, with one handle more: then its memory is another one, and that of
   `r` is still the caller's. */
struct outheap_region_record *outheap_region_record_add(struct outheap_region_record const *r,
                                                        struct outheap_region_error *);

/* One handle more, or less. */
void outheap_region_record_retain(struct outheap_region_record *);
void outheap_region_record_release(struct outheap_region_record *);

/* A pin: a handle with which the memory stays, whatever other domains do: deletion and revocation are refused (In_use,
   Regions). False: its end has come. */
bool outheap_region_record_pin(struct outheap_region_record *);
void outheap_region_record_unpin(struct outheap_region_record *);

/* To be called before a pointer into the region is given out, without a poll in between. False: its end has come. The
   caller has a handle. Lock-free. */
bool outheap_region_record_use(struct outheap_region_record *);

/* Deletion in three steps: `begin`; the caller runs two whole major cycles or more; `end`. `begin` is false while
   another deletion is not decided yet, with kind OUTHEAP_REGION_OK, or with an error. */
bool outheap_region_record_delete_begin(struct outheap_region_record *, struct outheap_region_error *);
bool outheap_region_record_delete_end(struct outheap_region_record *, struct outheap_region_error *);

/* The caller holds OCaml's lock. */
bool outheap_region_record_revoke(struct outheap_region_record *, struct outheap_region_error *);

/* A live image with that digest that is not written to, with a pin; NULL: none. */
struct outheap_region_record *outheap_region_record_image(unsigned char const digest[16]);
/* Does this address belong to a live region? The caller holds OCaml's lock. Lock-free; some nanoseconds. */
bool outheap_region_record_is_at(uintptr_t address);

/* For a signal handler: lock-free. Without OCaml's lock it may look at a record that ends at that moment: of a region
   that is read though no pointer leads there. False: no such region. */
struct outheap_region_record_place { char *base; size_t bytes; enum outheap_region_record_state state; };
bool outheap_region_record_find(uintptr_t address, struct outheap_region_record_place *);

/* What a region costs is to be declared to the collector once, by the first one who asks. False: that was done.
   `live`: bytes of all live regions. */
bool outheap_region_record_weigh(struct outheap_region_record *, size_t *live);

struct outheap_region_record_sums { size_t live, bytes, revoked, resting, deleted, unused; };
void outheap_region_record_sum(struct outheap_region_record_sums *);

#endif
