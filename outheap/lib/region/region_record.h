/* SPDX-License-Identifier: MIT */
/* Regions: their records, what keeps them alive, and their end.

   A region is LIVE, and then ends in one of three ways:
     unused    the marker has found no pointer to it in a whole cycle, no handle is left, and no live region needs it
     deleted   outheap_region_record_delete_begin and _end: the marker has found no pointer to it in a whole cycle,
               though there are handles
     revoked   outheap_region_record_revoke: at once; its memory becomes inaccessible, its addresses are never used
               again
   A region that is written to (tracked) may hold pointers to the heap, which count while it is LIVE; with handles it is
   a root of the collector.
   What is unused or deleted becomes DEAD while the world is stopped. Its memory is returned soon after (EMPTY); its
   addresses are free for other regions after one more cycle in which the marker has found no pointer to them.

     handles = OCaml handles + live regions that need it + calls that are using the record
     LIVE, DEAD or EMPTY  <=>  each cycle examines it (`index` says where);   REVOKED: never freed
     not over  <=>  it owns the chunks of [base, base + bytes) in region_addresses.h
     a record is freed when it is over and handles = 0;   only between two cycles, while the world is stopped, can one
     become over: so whoever finds one by its address, with OCaml's lock, can read it until it gives the lock away
     state = LIVE or DEAD  =>  [base, base + bytes) is mapped

   Nothing here takes time linear in the number of regions, but a cycle, which reads a byte and a record for each.

   There is one lock for all records. It is held shortly, never while OCaml's lock is waited for, and is taken before
   that of region_addresses.h. */
#ifndef OUTHEAP_REGION_RECORD_H
#define OUTHEAP_REGION_RECORD_H

#include "region_addresses.h"

#define OUTHEAP_REGION_RECORD_MAX 32768 /* regions at a time */

enum outheap_region_record_state {
  OUTHEAP_REGION_LIVE, OUTHEAP_REGION_DEAD, OUTHEAP_REGION_EMPTY, OUTHEAP_REGION_REVOKED
};

struct outheap_region_record {
  /* what each cycle reads: a line of the cache */
  enum outheap_region_record_state state;
  bool tracked; /* written to: the runtime follows what it holds (region_runtime.h) */
  bool over;
  bool is_image, owns_proxy /* malloc */;
  size_t handles, needed; /* live regions that need it, a part of `handles` */
  size_t pins;            /* calls that read its memory, a part of `handles`: it does not end meanwhile */
  struct caml_ba_proxy *proxy; /* of its bigarrays (region_runtime.h); NULL: it has none */
  char *base;
  size_t bytes; /* mapped; whole system pages */

  size_t index;
  struct outheap_region_addresses extent;
  size_t used;   /* of `bytes`, those of blocks and what precedes them */
  size_t blocks; /* 0: not counted (images) */
  bool charged;  /* outheap_region_record_charge_once */
  enum { OUTHEAP_REGION_NO_DELETION, OUTHEAP_REGION_ASKED, OUTHEAP_REGION_ARMED, OUTHEAP_REGION_DONE,
         OUTHEAP_REGION_REFUSED_DELETION } deletion;
  unsigned reached_by; /* of a refused deletion */
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

/* Makes a record for a mapped, declared piece of memory, with one handle: `r` is copied. The marker must not have found
   a pointer to it before. Returns NULL with an error: too many regions, no memory. If others have mapped the same image
   meanwhile, the result is their record, with one handle more: then the memory of `r` is still the caller's. */
struct outheap_region_record *outheap_region_record_add(struct outheap_region_record const *r,
                                                        struct outheap_region_error *);

/* Add a handle, or drop one. */
void outheap_region_record_retain(struct outheap_region_record *);
void outheap_region_record_release(struct outheap_region_record *);

/* Adds a pin: a handle with which the memory stays, whatever other domains do: deletion and revocation are refused
   (In_use, Regions). Returns false if the region has ended. */
bool outheap_region_record_pin(struct outheap_region_record *);
void outheap_region_record_unpin(struct outheap_region_record *);

/* To be called before a pointer into the region is given out, without a poll in between. Returns false if the region
   has ended. The caller has a handle. Lock-free. */
bool outheap_region_record_use(struct outheap_region_record *);

/* A deletion has three steps: `begin`; then the caller runs major cycles; then `end`. The first cycle may be under way
   already; the second one is whole, and what the marker finds in it decides; the callers run a third one, after which
   the addresses are free. `begin` returns false with an error, or, with kind OUTHEAP_REGION_OK, while another deletion
   is not decided yet. Cost: three major cycles. */
bool outheap_region_record_delete_begin(struct outheap_region_record *, struct outheap_region_error *);
bool outheap_region_record_delete_end(struct outheap_region_record *, struct outheap_region_error *);

/* Revokes the region. The caller holds OCaml's lock. Returns false with an error. */
bool outheap_region_record_revoke(struct outheap_region_record *, struct outheap_region_error *);

/* Finds a live image with that digest that is not written to, and pins it; NULL: there is none. */
struct outheap_region_record *outheap_region_record_image(unsigned char const digest[16]);
/* Does this address belong to a live region? The caller holds OCaml's lock. Lock-free; some nanoseconds. */
bool outheap_region_record_is_at(uintptr_t address);

/* Returns true the first time for a region: then the caller tells the collector what the region costs. `live` gets the
   bytes of all live regions. */
bool outheap_region_record_charge_once(struct outheap_region_record *, size_t *live);

/* Numbers of regions, and the bytes of live ones. */
struct outheap_region_record_stats { size_t live, bytes, revoked, resting, deleted, unused; };
void outheap_region_record_read_stats(struct outheap_region_record_stats *);

/* Installs a handler of SIGSEGV, which says what has happened before the process dies of a write to a region, or of a
   read of a revoked one; if the environment variable OUTHEAP has `debug.faults=report`, or if the runtime is a debug
   runtime and OUTHEAP does not have `debug.faults=off`. To be called once, when the library starts. */
void outheap_region_fault_start(void);

#endif
