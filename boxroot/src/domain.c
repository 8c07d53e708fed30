/* SPDX-License-Identifier: MIT */
#include "domain.h"
#include "fault.h"
#include "self.h"

BXR_INTERNAL_DATA_HERE bxr_domain bxr_domains[BXR_MAX_DOMAINS];

void bxr_domain_set_current(bxr_domain *d, bxr_pool *p)
{
  d->current = p;
  d->head.source = p == NULL ? &bxr_self_no_pool : &p->head;
  if (!BXR_OCAML5) bxr_domain_offer(d);
}

void bxr_domain_offer(bxr_domain *d)
{
  bxr_cache = bxr_runtime_may_end_unseen() ? &bxr_self_no_pool : d->head.source;
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
    d->strays = bxr_runtime_strays_here();
    if (d->cycle == 0) d->cycle = 1;
    bxr_store_relaxed(&d->head.state, bxr_self());
  }
  return d;
}
