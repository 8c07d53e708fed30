/* SPDX-License-Identifier: MIT */
#include "records.h"
#include "checked/account.h"
#include "delete.h"
#include "drain.h"
#include "os.h"
#include <stdlib.h>
#include <string.h>

/* --- storages ----------------------------------------------------------------------------------------------------- */

static bxr_storage *storages; /* only added to (atomic) */
static uint64_t last_name;    /* (atomic) */

#ifndef BXR_NAMES_STEP /* tests of storages that are cleared 2^32 times define it */
#define BXR_NAMES_STEP 1
#endif

static uint64_t new_name(void)
{
  return bxr_fetch_add_acq_rel(&last_name, (uint64_t)BXR_NAMES_STEP) + BXR_NAMES_STEP;
}

static bxr_storage *dead; /* those that have died, and have no records left, linked by next_dead (atomic) */

static void push_dead(bxr_storage *first, bxr_storage *last)
{
  bxr_storage *head = bxr_load_relaxed(&dead);
  do last->next_dead = head;
  while (!bxr_cas_acq_rel(&dead, &head, first));
}

/* The list is taken as a whole (orphans.c says why); what is not wanted is put back, at once if nobody came between. */
static bxr_storage *take_dead(void)
{
  if (bxr_load_relaxed(&dead) == NULL) return NULL;
  bxr_storage *s = bxr_exchange_acq_rel(&dead, (bxr_storage *)NULL), *none = NULL;
  if (s == NULL || s->next_dead == NULL || bxr_cas_acq_rel(&dead, &none, s->next_dead)) return s;
  bxr_storage *last = s->next_dead;
  while (last->next_dead != NULL) last = last->next_dead;
  push_dead(s->next_dead, last);
  return s;
}

bxr_storage *bxr_storage_new(char const *text, uint8_t wider)
{
  bxr_storage *s = take_dead(), *head = NULL;
  bool fresh = s == NULL;
  if (fresh) {
    s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->records = bxr_memory_map(BXR_MAX_DOMAINS * sizeof *s->records); /* touched where there are records */
    if (s->records == NULL) {
      free(s);
      return NULL;
    }
  }
  bxr_store_release(&s->is_available, false);
  memset(s->text, 0, sizeof s->text);
  for (unsigned i = 0; text != NULL && i < sizeof s->text - 1 && text[i] != 0; i++) s->text[i] = text[i];
  s->wider = wider;
  bxr_store_release(&s->name, new_name());
  if (!fresh) return s;
  head = bxr_load_relaxed(&storages);
  do s->next = head;
  while (!bxr_cas_acq_rel(&storages, &head, s));
  return s;
}

bxr_storage *bxr_storage_find(uint64_t name)
{
  if (name == 0) return NULL;
  for (bxr_storage *s = bxr_load_acquire(&storages); s != NULL; s = bxr_load_acquire(&s->next))
    if (bxr_load_acquire(&s->name) == name) return s;
  return NULL;
}

/* No domain makes a root in a pool of the old name from now on. `source` is stored beside its owner, which reads it
   when it makes a root, and does not do that now; its collections may store the same word meanwhile. A thread without
   the lock may be so slow that the record is another storage's by then: the next root there takes the slow path, which
   puts its pool back. */
static void rename_to(bxr_storage *s, uint64_t name)
{
  bxr_store_seq_cst(&s->name, name);
  for (uint32_t id = 0; id < bxr_load_acquire(&s->records_end); id++) {
    bxr_domain *d = bxr_load_acquire(&s->records[id]);
    if (d != NULL) bxr_store_relaxed(&d->head.source, &bxr_no_pool);
  }
}

void bxr_storage_rename(bxr_storage *s) { rename_to(s, new_name()); }

/* Once: an orphan may bring a record back for a moment, while another thread lets the storage die. */
static void make_available(bxr_storage *s)
{
  bool before = false;
  while (!before && !bxr_cas_acq_rel(&s->is_available, &before, true)) {}
  if (!before) push_dead(s, s);
}

/* The last record of a storage that has died, or whoever lets it die when there is none, makes it available. */
static void one_less(bxr_storage *s)
{
  if (bxr_fetch_add_acq_rel(&s->domains, -(uint32_t)1) == 1 && bxr_load_acquire(&s->name) == 0)
    make_available(s);
}

void bxr_storage_die(bxr_storage *s, bxr_domain *mine)
{
  (void)bxr_fetch_add_acq_rel(&s->domains, (uint32_t)1);
  rename_to(s, 0);
  for (uint32_t id = 0; id < bxr_load_acquire(&s->records_end); id++) {
    bxr_domain *d = bxr_load_relaxed(&s->records[id]);
    if (d != NULL && d != mine) bxr_add_relaxed(&bxr_domains[id].died, 1);
  }
  one_less(s);
}

BXR_INTERNAL_DATA_HERE bxr_storage *bxr_storage_wides[UINT8_MAX + 1];

bxr_storage *bxr_storage_wide(uint8_t wider)
{
  bxr_storage *there = bxr_storage_wide_if_there(wider);
  if (BXR_LIKELY(there != NULL)) return there;
  bxr_storage *fresh = bxr_storage_new("wide roots", wider);
  if (fresh == NULL) return NULL;
  while (there == NULL)
    if (bxr_cas_acq_rel(&bxr_storage_wides[wider], &there, fresh)) return fresh;
  bxr_storage_die(fresh, NULL); /* another thread was faster */
  return bxr_load_acquire(&bxr_storage_wides[wider]);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static bxr_domain *all_records;  /* only added to, linked by `next` (atomic) */
static bxr_domain *free_records; /* linked by `also`; taken as a whole (atomic) */
static bxr_domain *left_records; /* of these, as many as the orphans may need (atomic) */

bxr_domain *bxr_record_all(void) { return bxr_load_acquire(&all_records); }

static void push_record(bxr_domain **list, bxr_domain *first, bxr_domain *last)
{
  bxr_domain *head = bxr_load_relaxed(list);
  do last->also = head;
  while (!bxr_cas_acq_rel(list, &head, first));
}

static bxr_domain *pop_record(bxr_domain **list)
{
  if (bxr_load_relaxed(list) == NULL) return NULL;
  bxr_domain *d = bxr_exchange_acq_rel(list, (bxr_domain *)NULL);
  bxr_domain *none = NULL;
  if (d == NULL || d->also == NULL || bxr_cas_acq_rel(list, &none, d->also)) return d;
  bxr_domain *last = d->also;
  while (last->also != NULL) last = last->also;
  push_record(list, d->also, last);
  return d;
}

static bxr_domain *make_record(void)
{
  bxr_domain *d = NULL;
  if (posix_memalign((void **)&d, __alignof__(bxr_domain), sizeof *d) != 0) return NULL;
  *d = (bxr_domain){ .cycle = 1 };
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  d->head.source = &bxr_no_pool;
  bxr_domain *head = bxr_load_relaxed(&all_records);
  do d->next = head;
  while (!bxr_cas_acq_rel(&all_records, &head, d));
  return d;
}

/* Makes d, which is not in use, the record of the current domain, whose first record is `first`, for s. */
static void join(bxr_domain *first, bxr_storage *s, bxr_domain *d)
{
  unsigned id = (unsigned)(first - bxr_domains);
  bxr_store_relaxed(&d->storage, s);
  d->name = bxr_load_acquire(&s->name);
  d->wider = s->wider;
  bxr_domain_prepare(d);
  d->runtime_cycle = first->runtime_cycle;
  (void)bxr_fetch_add_acq_rel(&s->domains, (uint32_t)1);
  uint32_t end = bxr_load_relaxed(&s->records_end);
  while (end <= id && !bxr_cas_acq_rel(&s->records_end, &end, id + 1)) {}
  bxr_store_release(&s->records[id], d);
  d->also = first->also;
  d->before = first;
  if (first->also != NULL) first->also->before = d;
  first->also = d;
  first->storages++;
}

/* d is no longer the record of a domain. */
static void forget(bxr_domain *d)
{
  bxr_storage *s = d->storage;
  for (uint32_t id = 0; id < bxr_load_acquire(&s->records_end); id++)
    if (bxr_load_relaxed(&s->records[id]) == d) bxr_store_release(&s->records[id], (bxr_domain *)NULL);
  bxr_domain_set_current(d, NULL);
  bxr_store_relaxed(&d->storage, (bxr_storage *)NULL);
  d->name = 0;
  d->also = d->before = NULL;
  bxr_store_relaxed(&d->count.roots_last_cycle, (uint64_t)0);
  bxr_store_relaxed(&d->head.state, BXR_NOBODY);
  one_less(s);
}

/* A pool whose slots are being visited is on no list, but in use. */
static void retire_if_done(bxr_domain *first, bxr_domain *d)
{
  BXR_ASSERT_OWNER(d);
  bool current = d->name != 0 && bxr_load_relaxed(&d->storage->records[first - bxr_domains]) == d;
  if (current || d->scanning || d->count.pools_in_use != 0 || bxr_drain_has_work(d)) return;
  (void)bxr_idle_give(d, d->idle, 0);
  d->before->also = d->also;
  if (d->also != NULL) d->also->before = d->before;
  first->storages--;
  forget(d);
  push_record(&free_records, d, d);
}

void bxr_record_retire_all(bxr_domain *first)
{
  bxr_store_relaxed(&first->died, (uint64_t)0);
  for (bxr_domain *d = first->also, *next; d != NULL; d = next) {
    next = d->also;
    retire_if_done(first, d);
  }
}

void bxr_record_end(bxr_domain *d)
{
  bxr_record_catch_up(d);
  retire_if_done(&bxr_domains[bxr_runtime_domain()], d);
}

/* Half of the records are looked at in vain at most. */
static void retire_dead(bxr_domain *first)
{
  enum { FEW = 16 };
  uint64_t died = bxr_load_relaxed(&first->died);
  if (died < FEW || died < first->storages / 2) return;
  for (bxr_domain *d = first->also; d != NULL; d = d->also) bxr_record_catch_up(d);
  bxr_record_retire_all(first);
}

bxr_domain *bxr_record_here(bxr_storage *s)
{
  BXR_ASSERT_LOCK();
  bxr_domain *first = bxr_domain_here(), *d = bxr_load_relaxed(&s->records[bxr_runtime_domain()]);
  if (BXR_UNLIKELY(d == NULL)) {
    retire_dead(first);
    d = pop_record(&free_records);
    if (d == NULL) d = make_record();
    if (d == NULL) return NULL;
    join(first, s, d);
  }
  bxr_record_catch_up(d);
  return d;
}

void bxr_record_leave(bxr_domain *d, bool orphans)
{
  if (d->storage == NULL) return;
  forget(d);
  push_record(orphans ? &left_records : &free_records, d, d);
}

bxr_domain *bxr_record_for_orphan(bxr_domain *d, uint64_t name)
{
  BXR_ASSERT_OWNER(d);
  bxr_storage *s = bxr_storage_find(name);
  if (s == NULL) return d;
  bxr_domain *there = bxr_load_relaxed(&s->records[d - bxr_domains]);
  if (there != NULL && there->name == name) return there;
  there = pop_record(&left_records);
  if (there == NULL) there = pop_record(&free_records); /* if one was left that another domain has taken meanwhile, */
  if (there == NULL) there = make_record();             /* which takes luck */
  if (there == NULL) return d;
  join(d, s, there);
  return there;
}

void bxr_record_no_more_orphans(void)
{
  for (bxr_domain *d; (d = pop_record(&left_records)) != NULL;) push_record(&free_records, d, d);
}

/* --- what was cleared --------------------------------------------------------------------------------------------- */

void bxr_cleared_put(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  bool young = bxr_list_is_young(p->list);
  p->freed_is_exact = false;
  bxr_list_move(d, p, young ? BXR_LIST_YOUNG_FULL : BXR_LIST_CLEARED, false);
  bxr_owners_publish(d, p, b);
}

/* The batches were listed before: what is in none of them is pending by now. */
static bool is_read_no_more(bxr_pool *p, bxr_barrier b, bxr_batches const *batches)
{
  return !bxr_remote_batches_may_have(batches, p) && bxr_load_relaxed(&p->pending_groups) == 0 &&
         !bxr_pool_unread(p, b) && bxr_account_free_all(p->slots, p->head.active);
}

static void release(bxr_domain *d, bxr_pool *p, bxr_barrier b)
{
  bxr_pool_reset(p);
  bxr_store_relaxed(&p->storage, d->name);
  bxr_idle_release(d, p, b);
}

void bxr_cleared_release(bxr_domain *d)
{
  bxr_pool *p = d->lists[BXR_LIST_CLEARED];
  if (p == NULL) return;
  BXR_ASSERT_OWNER(d);
  bxr_batches batches;
  bxr_remote_list_batches(&batches);
  bxr_barrier b = bxr_domain_barrier(d);
  for (bool last = false; !last;) {
    bxr_pool *next = p->next;
    last = next == d->lists[BXR_LIST_CLEARED];
    if (is_read_no_more(p, b, &batches)) release(d, p, b);
    p = next;
  }
}

static void clear_list(bxr_domain *d, bxr_barrier b, int list, bxr_batches const *batches)
{
  bxr_pool *p = d->lists[list];
  if (p == NULL) return;
  for (bool last = false; !last;) {
    bxr_pool *next = p->next;
    last = next == d->lists[list];
    p->freed_is_exact = false;
    if (is_read_no_more(p, b, batches)) release(d, p, b);
    else if (list != BXR_LIST_YOUNG_FULL) bxr_cleared_put(d, p, b);
    else bxr_owners_publish(d, p, b);
    p = next;
  }
}

void bxr_record_catch_up(bxr_domain *d)
{
  if (d->storage == NULL || BXR_LIKELY(d->name == bxr_load_acquire(&d->storage->name))) return;
  BXR_ASSERT_OWNER(d);
  bxr_remote_flush(d);
  bxr_remote_flush(&bxr_domains[bxr_runtime_domain()]);
  bxr_barrier b = bxr_domain_barrier(d);
  if (!d->scanning) (void)bxr_drain_pending(d, b, BXR_DRAIN_ALL); /* or else these pools wait, too */
  bxr_domain_set_current(d, NULL);
  d->spare = NULL;
  bxr_idle_release_empty(d);
  d->name = bxr_load_acquire(&d->storage->name);
  for (bxr_pool *p = d->lists[BXR_LIST_IDLE], *end = p; p != NULL; p = p->next == end ? NULL : p->next)
    bxr_store_relaxed(&p->storage, d->name);
  bxr_batches batches;
  bxr_remote_list_batches(&batches);
  clear_list(d, b, BXR_LIST_YOUNG_FULL, &batches); /* where those go that may hold young values, and wait */
  for (int list = BXR_LIST_YOUNG_AVAIL; list < BXR_LISTS_OF_ROOTS; list++)
    if (list != BXR_LIST_YOUNG_FULL) clear_list(d, b, list, &batches);
}

/* --- teardown and unloading --------------------------------------------------------------------------------------- */

void bxr_record_tear_down(void)
{
  for (bxr_storage *s = bxr_load_acquire(&storages); s != NULL; s = bxr_load_acquire(&s->next))
    for (uint32_t id = 0; id < bxr_load_acquire(&s->records_end); id++) {
      bxr_domain *d = bxr_load_relaxed(&s->records[id]);
      if (d == NULL) continue;
      d->storage = s; /* dissolved, it knows nothing any more */
      forget(d);
      push_record(&free_records, d, d);
    }
  bxr_record_no_more_orphans();
}

void bxr_storage_release_all(void)
{
  for (bxr_storage *s = storages, *next; s != NULL; s = next) {
    next = s->next;
    bxr_memory_unmap(s->records, BXR_MAX_DOMAINS * sizeof *s->records);
    free(s);
  }
  for (bxr_domain *d = all_records, *next; d != NULL; d = next) {
    next = d->next;
    free(d);
  }
  storages = NULL;
  memset(bxr_storage_wides, 0, sizeof bxr_storage_wides);
  dead = NULL;
  all_records = free_records = left_records = NULL;
}
