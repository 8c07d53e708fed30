/* SPDX-License-Identifier: MIT */
#include "minor_size.h"
#include "log.h"
#include "metadata.h"
#include "minor.h"
#include "os.h"

/* Used by the domain's thread, or in its place by its backup thread. */
struct domain {
  uintnat owner; /* 1 + the unique number of the domain: another one may use the record later */
  uintnat words;
  bool fixed;
  struct oh_minor policy;
};
static struct domain *domains; /* NULL: nothing adapts itself */
static bool (*resize)(asize_t words);

void oh_minor_size_start(uintnat number, bool (*function)(asize_t words))
{
  resize = function;
  domains = oh_metadata_alloc(number * sizeof *domains);
  if (domains == NULL) oh_log("no memory for minor=adaptive: sizes are fixed");
}

void oh_minor_size_is(caml_domain_state *d, uintnat words)
{
  if (domains == NULL) return;
  oh_minor_account(domains[d->id].words, words);
  domains[d->id].words = words;
}

static struct domain *record(caml_domain_state *d)
{
  if (domains == NULL) return NULL;
  struct domain *r = &domains[d->id];
  uintnat owner = (uintnat)d->unique_id + 1;
  if (r->owner != owner) *r = (struct domain){ .owner = owner, .words = r->words };
  return r;
}

void oh_minor_size_fix(caml_domain_state *d)
{
  struct domain *r = record(d);
  if (r != NULL) r->fixed = true;
}

void oh_minor_size_begin(caml_domain_state *d)
{
  struct domain *r = record(d);
  if (r != NULL && !r->fixed) oh_minor_begin(&r->policy, oh_os_now());
}

void oh_minor_size_end(caml_domain_state *d, uintnat allocated_bytes)
{
  struct domain *r = record(d);
  if (r != NULL && !r->fixed)
    oh_minor_end(&r->policy, oh_os_now(), Wsize_bsize(allocated_bytes), d->minor_heap_wsz, caml_domain_alone());
}

bool oh_minor_size_adapt(caml_domain_state *d)
{
  struct domain *r = record(d);
  if (r == NULL || r->fixed) return false;
  uintnat now = d->minor_heap_wsz, wanted = oh_minor_choose(&r->policy, now);
  if (wanted == now) return false;
  wanted = caml_norm_minor_heap_size(wanted);
  if (wanted == now) return false;
  bool done = (wanted < now || oh_minor_allows(wanted - now)) && resize(wanted);
  oh_minor_changed(&r->policy, now, done ? wanted : now);
  return done && wanted > now;
}
