/* SPDX-License-Identifier: MIT */
#include "minor_size.h"
#include "base.h"
#include "clock.h"
#include "minor.h"
#include "settings.h"

/* Used by the domain's thread, or in its place by its backup thread. */
struct domain {
  uintnat owner; /* 1 + the unique number of the domain: another one may use the record later */
  uintnat words; /* there is memory for so many */
  bool fixed;
  uintnat promoted, major; /* words in all, when the last collection ended */
  uint64_t slice;          /* when the slice began; 0: it does not count */
  bool alone;              /* then */
  struct oh_minor policy;
};
static struct domain *domains; /* NULL: nothing adapts itself */
static bool (*resize)(asize_t words, bool keep);

void oh_minor_size_start(uintnat number, bool (*function)(asize_t words, bool keep))
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

uintnat oh_minor_size_memory(caml_domain_state *d) { return domains == NULL ? 0 : domains[d->id].words; }

/* What the policy calls used. */
static uint64_t used(bool alone) { return alone ? oh_clock_used() : oh_clock_now(); }

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
  if (r != NULL && !r->fixed) oh_minor_begin(&r->policy, used(caml_domain_alone()));
}

void oh_minor_size_end(caml_domain_state *d, uintnat allocated_bytes, bool remembered)
{
  struct domain *r = record(d);
  if (r == NULL || r->fixed) return;
  uintnat promoted = d->stat_promoted_words, major = d->stat_major_words + d->allocated_words;
  bool alone = caml_domain_alone();
  struct oh_minor_collection c = {
    .words = d->minor_heap_wsz, .allocated = Wsize_bsize(allocated_bytes), .promoted = promoted - r->promoted,
    .major = major - r->major, .remembered = remembered, .alone = alone,
    .used = used(alone)
  };
  oh_minor_end(&r->policy, &c);
  r->promoted = promoted;
  r->major = major;
}

void oh_minor_size_slice_begin(caml_domain_state *d)
{
  struct domain *r = record(d);
  if (r == NULL || r->fixed) return;
  r->alone = caml_domain_alone();
  r->slice = used(r->alone);
}

void oh_minor_size_slice_end(caml_domain_state *d)
{
  struct domain *r = record(d);
  if (r == NULL || r->fixed || r->slice == 0) return;
  if (r->alone == caml_domain_alone()) oh_minor_slice(&r->policy, d->minor_heap_wsz, used(r->alone) - r->slice);
  r->slice = 0;
}

/* The next domain with this number may come late, or never, and gets other memory in any case. */
static bool leave(uintnat now, uintnat memory)
{
  uintnat least = caml_norm_minor_heap_size(oh_settings.minor_least);
  if (least > now) least = now;
  if (least < memory) resize(least, false);
  return false;
}

bool oh_minor_size_adapt(caml_domain_state *d)
{
  struct domain *r = record(d);
  if (r == NULL) return false;
  uintnat now = d->minor_heap_wsz, memory = r->words;
  if (caml_domain_is_terminating()) return leave(now, memory);
  if (r->fixed) return false;
  uintnat wanted = oh_minor_choose(&r->policy, now);
  if (wanted != now) wanted = caml_norm_minor_heap_size(wanted);
  bool keep = oh_minor_tries(&r->policy);
  if (wanted == now && (keep || memory == now)) return false;
  bool done = (wanted <= memory || oh_minor_allows(wanted - memory)) && resize(wanted, keep);
  if (wanted != now) oh_minor_changed(&r->policy, now, done ? wanted : now);
  /* In a trial they are made anew only where they are what fills. */
  return done && wanted != now && (r->policy.remembered || (wanted > now && (wanted > memory || !keep)));
}
