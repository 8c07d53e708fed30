/* SPDX-License-Identifier: MIT */
#include "domain.h"
#include "fault.h"

BXR_INTERNAL_DATA_HERE bxr_domain bxr_domains[BXR_MAX_DOMAINS];
static bxr_pool_head no_pool = { BXR_NOBODY, BXR_NOBODY, BXR_NOBODY, BXR_FREE_END, 0, 0 };
#if BXR_OCAML5
BXR_THREAD_LOCAL
#endif
bxr_pool_head *bxr_cache = &no_pool;

void bxr_domain_set_current(bxr_domain *d, bxr_pool *p)
{
  d->current = p;
  d->head.source = p == NULL ? &no_pool : &p->head;
  if (!BXR_OCAML5) bxr_cache = d->head.source;
}

bxr_domain *bxr_domain_here(void)
{
  bxr_domain *d = &bxr_domains[bxr_runtime_domain()];
  if (!bxr_domain_is(d, bxr_self())) {
    BXR_ASSERT(d->count.pools_in_use == 0 && d->idle == 0);
    bxr_domain_set_current(d, NULL);
    d->marking = d->scanning = false;
    d->served = d->served_before = 0;
    d->chain_end = NULL;
    if (d->cycle == 0) d->cycle = 1;
    bxr_store_relaxed(&d->head.state, bxr_self());
  }
  return d;
}
