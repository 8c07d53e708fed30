/* SPDX-License-Identifier: MIT */
/* Storages: sets of roots that are dropped together.

     boxroot_storage s = boxroot_storage_create("connection 7");   // NULL on failure: boxroot_error_string() says why
     boxroot r = boxroot_storage_add(s, v);                        // a root as any other, in s
     ...
     boxroot_storage_clear(s);                                     // r, and all others in s, are gone
     boxroot_storage_delete(s);

   A root in a storage is a root: boxroot_get, boxroot_modify and boxroot_delete do with it what they do with others, at
   the same cost, and boxroot_modify keeps it in its storage. A storage has separate pools, so that the roots of a
   library, a connection or a plug-in can be dropped, and counted, without visiting each.

   Memory. A storage reserves 32 KB of address space and touches 4 KB (OCaml 4.14: 4 KB in all). For each domain that
   makes roots in it come 1 KB and at least one pool: 16 KB of address space, touched as far as it is used. The next
   storage uses this memory again: at once if the thread that deletes the storage has the lock and no other domain has
   used it. Then a session that creates a storage, makes up to 50 roots in it and deletes it takes no further memory.
   Its time is 0.3 to 0.6 microseconds (AMD EPYC, OCaml 5.5.2). Each minor collection of a domain with roots in a
   storage looks at that storage, for a tenth of a microsecond: thousands are fine.

   Copies of the library: as for roots (boxroot.h); but a storage belongs to the copy that made it. Where the names of
   two copies are separate, the other one may read and delete a root in it, while boxroot_modify can fail with EPERM. */
#ifndef BOXROOT_STORAGE_H
#define BOXROOT_STORAGE_H

#include "../boxroot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct boxroot_storage_private *boxroot_storage;

/* boxroot_storage_create(name): a new storage without roots; the caller owns it. The name, for reports, is copied; only
   47 bytes of it are kept. NULL stands for no name.
   Needs the domain lock. Sets the library up at its first use. Never runs the GC.
   Failure: NULL, with the reasons of boxroot_create.
   Cost: an allocation, and a system call, unless one that was deleted is used again. */
boxroot_storage boxroot_storage_create(char const *name) BXR_LINK_NAME(storage_create);

/* boxroot_storage_add(s, v): a new root in s that holds v; the caller owns it, until s is cleared or deleted.
   Needs s owned or borrowed, and the domain lock: of any domain. Never runs the GC.
   Failure: NULL, with the reasons of boxroot_create; and EPERM in a domain that has ended (in a finaliser that runs at
   its end).
   Cost: boxroot_create's, and a call. */
boxroot boxroot_storage_add(boxroot_storage s, value v) BXR_LINK_NAME(storage_add);

/* boxroot_storage_here(s): a handle on s and the domain whose lock the caller holds: boxroot_create_in(d, v) makes
   roots in s, at the cost that it has for others (OCaml 4.14: that of boxroot_storage_add). boxroot_delete_in(d, r) is
   for all roots of that domain. The handle's rules are those of boxroot_domain_here; also it is not valid once s was
   deleted. Failure: NULL, as boxroot_storage_add. */
boxroot_domain boxroot_storage_here(boxroot_storage s) BXR_LINK_NAME(storage_here);

/* boxroot_storage_clear(s): drops all roots in s, of all domains; they must not be used again, or deleted. s is as new.
   boxroot_storage_delete(s) does that too, and the caller gives s up.
   Both need s owned, and that no other thread uses s or a root in it meanwhile. boxroot_storage_clear needs the domain
   lock. boxroot_storage_delete needs none, but if it is not held the domains find out, and give memory back, when they
   next collect; as other domains always do. They never run the GC.
   Failure: clear: false, with the reasons of boxroot_setup; nothing was dropped. delete: none.
   Cost: a step for each domain, and for each pool of this domain; if deletions are pending, also for each of them.
   Values that a marker has yet to read live until it has finished, as after boxroot_delete.
   After boxroot_teardown, which drops all roots, a storage can still be deleted, and used again after boxroot_setup. */
bool boxroot_storage_clear(boxroot_storage s) BXR_LINK_NAME(storage_clear);
void boxroot_storage_delete(boxroot_storage s) BXR_LINK_NAME(storage_delete);

/* boxroot_storage_count(s): how many roots s has that this domain has made, or adopted from one that ended. Deletions
   that are pending count as roots: those of other threads and domains, and those that wait for the marker; in the
   checked build those in quarantine, too.
   boxroot_storage_name(s): its name; valid until s is deleted.
   Both need s owned or borrowed. The count needs the domain lock, and that no other thread uses s, or a root in it,
   meanwhile; without the lock: 0.
   Cost: a step for each pool, and for each slot in them that is free and has been in use. */
size_t boxroot_storage_count(boxroot_storage s) BXR_LINK_NAME(storage_count);
char const *boxroot_storage_name(boxroot_storage s) BXR_LINK_NAME(storage_name);

#if BOXROOT_DEBUG && !defined(BXR_LIBRARY) /* private: boxroot/checked.h */
BXR_AT(boxroot, storage_add, (boxroot_storage s, value v, BXR_PLACE), (s, v))
BXR_AT(bool, storage_clear, (boxroot_storage s, BXR_PLACE), (s))
BXR_VOID_AT(storage_delete, (boxroot_storage s, BXR_PLACE), (s))
#define boxroot_storage_add(s, v) bxr_storage_add_at((s), (v), BXR_HERE)
#define boxroot_storage_clear(s) bxr_storage_clear_at((s), BXR_HERE)
#define boxroot_storage_delete(s) bxr_storage_delete_at((s), BXR_HERE)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
