/* SPDX-License-Identifier: MIT */
#include "sample.h"
#include "depot.h"
#include "os.h"
#include <string.h>

extern int backtrace(void **, int) __attribute__((weak)); /* not in every C library */

static uint32_t interval; /* (atomic) */
uint32_t bxr_sample_interval(void) { return bxr_load_relaxed(&interval); }

/* --- calls, each known by where it is in a table ------------------------------------------------------------------ */

typedef struct call_stack {
  void *calls[BXR_SAMPLE_CALLS];
  uint64_t live; /* in the report that is being made */
} call_stack;

/* 0 stands for no sample, 1 for those that found no place: they have no calls. */
enum { OTHER_CALLS = 1, FIRST_CALLS = 2, STACKS = 1 << 16, PROBES = 64 };
static call_stack *stacks; /* (atomic) */
static call_stack *all_stacks(void) { return bxr_load_acquire(&stacks); }
static bool stacks_lock;

static uint16_t number_of(void **calls)
{
  uint64_t hash = 0;
  for (int i = 0; i < BXR_SAMPLE_CALLS; i++) hash = (hash ^ (uintptr_t)calls[i]) * 0x9e3779b97f4a7c15u;
  uint16_t found = OTHER_CALLS;
  call_stack *all = all_stacks();
  bxr_thread_lock(&stacks_lock);
  for (unsigned i = 0; i < PROBES && found == OTHER_CALLS; i++) {
    unsigned at = (unsigned)((hash >> 40) + i) % STACKS;
    if (at < FIRST_CALLS) continue;
    if (all[at].calls[0] == NULL) memcpy(all[at].calls, calls, sizeof all[at].calls);
    if (memcmp(all[at].calls, calls, sizeof all[at].calls) == 0) found = (uint16_t)at;
  }
  bxr_thread_unlock(&stacks_lock);
  return found;
}

static uint16_t calls_here(void)
{
  void *calls[BXR_SAMPLE_CALLS] = { NULL };
  return backtrace(calls, BXR_SAMPLE_CALLS) > 0 ? number_of(calls) : OTHER_CALLS;
}

/* --- tags of slots ------------------------------------------------------------------------------------------------ */

/* A segment's tags are made when its first slot is to have one, and touched where there are some. */
static uint16_t *tag_of(uintptr_t slot, bool make)
{
  bxr_segment *s = bxr_segment_of(slot);
  uint16_t *tags = bxr_load_acquire(&s->tags);
  if (tags == NULL && make) {
    uint16_t *fresh = bxr_memory_map(BXR_SEGMENT_TAGS * sizeof *tags);
    if (fresh == NULL) return NULL;
    while (tags == NULL && !bxr_cas_acq_rel(&s->tags, &tags, fresh)) {}
    if (tags != NULL) bxr_memory_unmap(fresh, BXR_SEGMENT_TAGS * sizeof *tags); /* another thread was faster */
    else tags = fresh;
  }
  return tags == NULL ? NULL : &tags[(slot & (BXR_SEGMENT_SIZE - 1)) / sizeof(uintptr_t)];
}

static void drop_tags(void)
{
  bxr_pool *p;
  for (uint64_t i = 0; bxr_depot_look(i, &p); i++) {
    uint16_t *tag = p == NULL ? NULL : tag_of((uintptr_t)p, false);
    for (size_t k = 0; tag != NULL && k < BXR_POOL_SIZE / sizeof(uintptr_t); k++)
      if (bxr_load_relaxed(&tag[k]) != 0) bxr_store_relaxed(&tag[k], (uint16_t)0);
  }
}

static bool make_stacks(void)
{
  if (backtrace == NULL) {
    errno = ENOTSUP;
    return false;
  }
  void *here;
  (void)backtrace(&here, 1); /* allocates at its first use */
  call_stack *known = all_stacks(), *fresh = known == NULL ? bxr_memory_map(STACKS * sizeof(call_stack)) : NULL;
  if (fresh == NULL) return known != NULL;
  while (known == NULL)
    if (bxr_cas_acq_rel(&stacks, &known, fresh)) return true;
  bxr_memory_unmap(fresh, STACKS * sizeof(call_stack)); /* another thread was faster */
  return true;
}

bool bxr_sample_start(uint32_t n)
{
  if (n > UINT32_MAX / 2) n = UINT32_MAX / 2;
  if (n > 0 && !make_stacks()) return false;
  drop_tags();
  bxr_store_relaxed(&interval, n);
  bxr_store_release(&bxr_domain_all_slow, n > 0);
  return true;
}

/* From 1 to 2 n - 1, each as likely: a program that makes roots in turns cannot be in step. */
static uint32_t draw(uint32_t n)
{
  static uint64_t draws; /* (atomic) */
  uint64_t x = (bxr_fetch_add_acq_rel(&draws, (uint64_t)1) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return 1 + (uint32_t)((x >> 32) % (2 * (uint64_t)n - 1));
}

void bxr_sample_note(bxr_domain *d, uintptr_t *slot)
{
  uint32_t n = bxr_load_relaxed(&interval);
  if (n == 0) return;
  if (d->until_sample == 0 || d->until_sample >= 2 * n) d->until_sample = draw(n);
  bool chosen = --d->until_sample == 0;
  uint16_t *tag = tag_of((uintptr_t)slot, chosen), number = chosen && tag != NULL ? calls_here() : 0;
  if (tag != NULL && bxr_load_relaxed(tag) != number) bxr_store_relaxed(tag, number);
}

void bxr_sample_move(boxroot from, boxroot to)
{
  if (!bxr_depot_has((bxr_pool *)bxr_pool_of(from))) return;
  uint16_t *old = tag_of((uintptr_t)from, false), number = old == NULL ? 0 : bxr_load_relaxed(old);
  uint16_t *new = tag_of((uintptr_t)to, number != 0);
  if (new != NULL) bxr_store_relaxed(new, number);
}

/* --- for a report ------------------------------------------------------------------------------------------------- */

void bxr_sample_begin(void)
{
  call_stack *all = all_stacks();
  for (unsigned id = OTHER_CALLS; all != NULL && id < STACKS; id++)
    if (all[id].live != 0) all[id].live = 0;
}

void bxr_sample_add(bxr_census const *c)
{
  uint16_t *tags = tag_of((uintptr_t)c->pool, false);
  if (tags == NULL) return;
  for (unsigned g = 0; g < BXR_PENDING_WORDS; g++)
    for (uint64_t m = c->live[g]; m != 0; m &= m - 1) {
      uint16_t id = bxr_load_relaxed(&tags[64 * g + (unsigned)__builtin_ctzll(m)]);
      if (id != 0) all_stacks()[id].live++;
    }
}

void bxr_sample_each(void (*f)(void *data, unsigned id, uint64_t roots), void *data)
{
  call_stack *all = all_stacks();
  for (unsigned id = OTHER_CALLS; all != NULL && id < STACKS; id++)
    if (all[id].live != 0) f(data, id, all[id].live * bxr_sample_interval());
}

void *const *bxr_sample_calls(unsigned id) { return all_stacks()[id].calls; }

void bxr_sample_release(void)
{
  if (stacks != NULL) bxr_memory_unmap(stacks, STACKS * sizeof(call_stack));
  stacks = NULL;
}
