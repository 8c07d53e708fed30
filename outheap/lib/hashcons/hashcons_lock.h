/* SPDX-License-Identifier: MIT */
/* The one lock of this library: it guards tables, cells, and the state of their collection. It is held for a lookup,
   for the copy of a node, or for a slice of the collection, by code that neither runs OCaml nor polls: so a stopped
   domain does not hold it, and it may be taken while all are stopped. It spins shortly, then gives the processor away.
   A fork waits for it. */
#ifndef OUTHEAP_HASHCONS_LOCK_H
#define OUTHEAP_HASHCONS_LOCK_H

#include <stdbool.h>

extern bool outheap_hashcons_lock_held;
void outheap_hashcons_lock_wait(void);

/* Once, before the first use: forks. */
void outheap_hashcons_lock_start(void);

static inline void outheap_hashcons_lock_take(void)
{
  /* acquire: pairs with the release below */
  if (__builtin_expect(__atomic_exchange_n(&outheap_hashcons_lock_held, true, __ATOMIC_ACQUIRE), 0))
    outheap_hashcons_lock_wait();
}

static inline void outheap_hashcons_lock_give(void)
{
  __atomic_store_n(&outheap_hashcons_lock_held, false, __ATOMIC_RELEASE);
}

#endif
