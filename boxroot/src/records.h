/* SPDX-License-Identifier: MIT */
/* Storages (boxroot/storage.h): the records that domains have for their roots, and how these are dropped.

   A storage has a name, a number that no other storage has and that changes when the storage is cleared. Each record of
   a domain for a storage, and each pool in it, says which name it belongs to. So a storage is cleared by changing its
   name, whatever domains have pools of it: where the names of pool and record differ, the roots are gone. A record
   finds out when its domain next makes a root there or collects; it is made to take the slow path before (`source`).

   A pool that was cleared keeps its values as long as somebody may read them. It stays
   - on LIST_YOUNG_FULL until the next minor collection, if it may hold young values and a marker may read it later;
   - then on LIST_CLEARED, until the marker has finished, and no other domain has deletions of its roots in a batch: the
     next minor collection records these, and they have to find the pool as it was.
   Nothing visits its slots meanwhile but a marker that has them in its snapshot. Then it is an idle pool as any other;
   most are at once. Idea: names in place of visits, as generations of slots make stale handles of arenas harmless.

   A record whose storage has died, and whose pools nobody reads any more, serves another storage. The domain that lets
   the storage die sees to that at once, if it can. Otherwise it is left for the domain's next minor collection, or for
   when the domain needs a record and half of those that it has are such.

   Memory of records and storages is used again for others, and never freed while the library is in use: a thread that
   deletes a root may look at the record of a domain that has ended meanwhile (delete.c).

   Since OCaml 5.5 a domain may run when another begins to mark: what it read from a root may be the only pointer to a
   value where the collector has looked already. So nothing is dropped then, and a domain that has to adopt a pool of a
   storage whose record has yet to catch up gets a second one, in which all roots are made from then on.

   Invariants: a storage that is alive has a name != 0, one that is not has name == 0; `domains` is the number of its
   records; records[id] is the record of the domain with that identity in which it makes roots, or NULL; d->name == 0
   iff d->storage == NULL or the storage has died; a record is on the list `also` of its domain, or on a list of those
   that are not in use. */
#ifndef BXR_RECORDS_H
#define BXR_RECORDS_H

#include "domain.h"

enum { BXR_STORAGE_NAME = 48 };

typedef struct bxr_storage {
  struct bxr_storage *next; /* of all there ever were (atomic) */
  uint64_t name;            /* (atomic) */
  uint32_t domains;         /* (atomic) */
  uint32_t records_end;     /* records[id] == NULL for id >= records_end (atomic) */
  struct bxr_storage *next_dead; /* of those that can be used again */
  bool is_available;        /* it is one of these (atomic) */
  uint8_t wider;            /* slots of a root beside the first one */
  bxr_domain **records;     /* BXR_MAX_DOMAINS of them (atomic); each is stored by the domain, or for it */
  char text[BXR_STORAGE_NAME]; /* what the program calls it */
} bxr_storage;

/* A new storage, for roots with wider + 1 slots. NULL: no memory. Needs no lock. */
BXR_INTERNAL bxr_storage *bxr_storage_new(char const *text, uint8_t wider);

/* The storage of all wide roots with wider + 1 slots; it never dies. NULL: no memory. Needs no lock. */
BXR_INTERNAL bxr_storage *bxr_storage_wide(uint8_t wider);
BXR_INTERNAL_DATA bxr_storage *bxr_storage_wides[UINT8_MAX + 1]; /* (atomic) */

/* The same, but NULL if there is none yet. */
static inline bxr_storage *bxr_storage_wide_if_there(uint8_t wider)
{
  return bxr_load_acquire(&bxr_storage_wides[wider]);
}

/* The storage of that name; NULL if there is none. Cost: a look at each storage. */
BXR_INTERNAL bxr_storage *bxr_storage_find(uint64_t name);

/* The storage gets another name, or dies; then `mine` is the one of its records, if any, whose end the caller will see
   to by bxr_record_end. Needs s alive, and that no thread uses it. */
BXR_INTERNAL void bxr_storage_rename(bxr_storage *s);
BXR_INTERNAL void bxr_storage_die(bxr_storage *s, bxr_domain *mine);

/* All records that storages ever had. They stay. */
BXR_INTERNAL bxr_domain *bxr_record_all(void);

/* The record of the current domain for s, made ready for use. NULL: no memory. Needs the domain lock, and a domain that
   has not ended. */
BXR_INTERNAL bxr_domain *bxr_record_here(bxr_storage *s);

/* Drops the roots of d if its storage was cleared; also while d is being scanned: the pool whose slots are looked at is
   on no list then. Needs the lock of d, or the world stopped. Cost: a step per pool if it was. */
BXR_INTERNAL void bxr_record_catch_up(bxr_domain *d);

/* The storage of d, a record of the current domain, has died: drops its roots, and takes d from the domain if it has no
   pools then. Needs the lock of d. Cost: a step per pool. */
BXR_INTERNAL void bxr_record_end(bxr_domain *d);

/* After a minor collection: takes those of d's pools that were cleared, and that nobody may read any more, out of
   use. */
BXR_INTERNAL void bxr_cleared_release(bxr_domain *d);

/* The pool, one of d's that holds roots no more, goes on the list where it waits. */
BXR_INTERNAL void bxr_cleared_put(bxr_domain *d, bxr_pool *p, bxr_barrier b);

/* Takes those records of storages from the domain whose first record is `first` that have no pools, and will have none:
   the storage has died, or the domain has another record for it. Needs the lock of that domain. Cost: a step per
   record. */
BXR_INTERNAL void bxr_record_retire_all(bxr_domain *first);

/* --- for orphans.c ------------------------------------------------------------------------------------------------ */

/* The domain of d, a record without pools, has ended. Some of its pools are about to be orphans if `orphans`. Does
   nothing if d is the domain's first record. */
BXR_INTERNAL void bxr_record_leave(bxr_domain *d, bool orphans);

/* The record of the domain whose first record is d for an orphaned pool of the storage of that name, or d if there is
   none any more. Needs the world stopped. The record is one that an ended domain has left. */
BXR_INTERNAL bxr_domain *bxr_record_for_orphan(bxr_domain *d, uint64_t name);

/* There are no orphans. */
BXR_INTERNAL void bxr_record_no_more_orphans(void);

/* --- for teardown and unloading ----------------------------------------------------------------------------------- */

/* The library is torn down; no record has pools any more. Storages stay, without records. */
BXR_INTERNAL void bxr_record_tear_down(void);
BXR_INTERNAL void bxr_storage_release_all(void);

#endif
