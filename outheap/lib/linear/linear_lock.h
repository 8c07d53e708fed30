/* SPDX-License-Identifier: MIT */
/* Locks, for some instructions or a system call: one for each pool, and one for what all share. No function holds one
   when it returns, but for those here, or takes a second one while it has a pool's. Callers have OCaml's lock (in OCaml
   5: that of their domain), so where one domain runs, locks and atomic exchanges are left out: outheap_linear_alone.
   Handlers for fork take all locks, so that none is held in the child process. */
#ifndef OUTHEAP_LINEAR_LOCK_H
#define OUTHEAP_LINEAR_LOCK_H

#include "region_base.h"
#if OCAML_VERSION >= 50000
#include <caml/domain.h>
#endif

/* Does no other domain run, until the caller gives its lock away? A domain counts from when it has its lock first, and
   until it has ended; another one cannot begin while the caller has the lock. What domains that have ended did is seen.
   Cost: a load. */
static inline bool outheap_linear_alone(void)
{
#if OCAML_VERSION >= 50000
  return caml_domain_alone();
#else
  return true;
#endif
}

struct outheap_linear_lock { bool held; struct outheap_linear_lock *next; /* of all */ };

/* Installs the handlers for fork. Once. */
void outheap_linear_lock_start(void);

/* A lock that is new: fork takes it from now on. To be called with the common lock. */
void outheap_linear_lock_announce(struct outheap_linear_lock *);

/* Whether another domain runs or not. NULL: the common lock. */
void outheap_linear_lock_take(struct outheap_linear_lock *);
void outheap_linear_lock_give(struct outheap_linear_lock *);

/* Whether there is something to give: what `enter` decides stays true, since the caller keeps OCaml's lock. */
static inline bool outheap_linear_lock_enter(struct outheap_linear_lock *l)
{
  if (outheap_linear_alone()) return false;
  outheap_linear_lock_take(l);
  return true;
}

static inline void outheap_linear_lock_leave(struct outheap_linear_lock *l, bool entered)
{
  if (entered) outheap_linear_lock_give(l);
}

/* Memory of zeroes that shares no cache line with another piece, as other domains use that. NULL: there is none. */
#define OUTHEAP_LINEAR_LINES ((size_t)128)
void *outheap_linear_lock_lines(size_t bytes);

#endif
