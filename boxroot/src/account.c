/* SPDX-License-Identifier: MIT */
#include "account.h"

#if BOXROOT_DEBUG
#include <stdio.h>
#include <stdlib.h>

/* What is known of a slot. Every field is atomic, since any thread may misuse a root. `state` is changed by a
   read-modify-write wherever two threads may disagree about it, and stored with release after what it stands for. */
typedef struct record {
  bxr_site created, deleted;
  uint32_t state;
} record;

enum { RECORDS = 63 * BXR_CAPACITY };
/* The calls that led to the creation and to the deletion; on request. A message about wrong use may have parts of
   two. */
enum { CREATED, DELETED, FRAMES = 16 };
typedef struct calls {
  void *frames[2][FRAMES];
} calls;

typedef struct account {
  struct account *next;
  uintptr_t region;
  calls *calls;            /* of records[i]: calls[i]; NULL: none are kept */
  record records[RECORDS]; /* of pool i: from (i - 1) * BXR_CAPACITY */
} account;

static account *accounts;   /* all of them */
static uint64_t live_roots;

/* --- from an address to its record: a tree over the number of the region, which only grows ------------------------ */

enum { FAN_OUT_LOG = 13, LEVELS = 3, FAN_OUT = 1 << FAN_OUT_LOG };
static void *top[FAN_OUT];

static void *child(void **node, unsigned i, size_t size)
{
  void *c = bxr_load_acquire(&node[i]);
  if (c != NULL || size == 0) return c;
  void *fresh = calloc(1, size);
  if (fresh == NULL) return NULL;
  while (c == NULL)
    if (bxr_cas_seq_cst(&node[i], &c, fresh)) return fresh;
  free(fresh); /* another thread was faster */
  return bxr_load_acquire(&node[i]);
}

/* The account of a region; with `make` a new one if there is none. NULL: there is none, or no memory. */
static account *account_of(uintptr_t address, bool make)
{
  uintptr_t number = address / BXR_REGION_SIZE;
  if (number >> (FAN_OUT_LOG * LEVELS) != 0) return NULL;
  void **node = top;
  for (int level = LEVELS - 1; level > 0 && node != NULL; level--)
    node = child(node, number >> (FAN_OUT_LOG * level) & (FAN_OUT - 1), make ? FAN_OUT * sizeof(void *) : 0);
  return node == NULL ? NULL : child(node, number & (FAN_OUT - 1), make ? sizeof(account) : 0);
}

/* NULL unless the address is that of a slot. */
static record *find_record(boxroot r)
{
  if ((uintptr_t)r % sizeof(uintptr_t) != 0) return NULL;
  account *a = account_of((uintptr_t)r, false);
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (a == NULL || bxr_region_index(p) == 0 || (uintptr_t *)r < p->slots) return NULL;
  size_t i = (uintptr_t *)r - p->slots;
  return i < BXR_CAPACITY ? &a->records[(bxr_region_index(p) - 1) * BXR_CAPACITY + i] : NULL;
}

bxr_slot_state bxr_account_state(uintptr_t const *slot) { return bxr_load_acquire(&find_record((boxroot)slot)->state); }

void bxr_account_set_state(uintptr_t const *slot, bxr_slot_state state)
{
  bxr_store_release(&find_record((boxroot)slot)->state, (uint32_t)state);
}

/* --- the calls that led to a place -------------------------------------------------------------------------------- */

bool bxr_account_wanted(char const *variable)
{
  char const *s = getenv(variable);
  return s != NULL && *s != '\0' && *s != '0';
}

bool bxr_account_open(void *region)
{
  account *a = account_of((uintptr_t)region, true);
  if (a == NULL) return false;
  if (bxr_account_wanted("BOXROOT_STACKS") && bxr_load_acquire(&a->calls) == NULL) {
    calls *fresh = calloc(RECORDS, sizeof(calls)), *other = NULL;
    if (fresh == NULL) return false;
    while (other == NULL)
      if (bxr_cas_seq_cst(&a->calls, &other, fresh)) break;
    if (other != NULL) free(fresh); /* another thread was faster */
  }
  uintptr_t none = 0;
  while (none == 0)
    if (bxr_cas_seq_cst(&a->region, &none, (uintptr_t)region)) {
      account *head = bxr_load_relaxed(&accounts);
      do bxr_store_relaxed(&a->next, head);
      while (!bxr_cas_seq_cst(&accounts, &head, a));
      break;
    }
  return true;
}

static calls *calls_of(boxroot r, record *c)
{
  account *a = account_of((uintptr_t)r, false);
  calls *all = bxr_load_acquire(&a->calls);
  return all == NULL ? NULL : &all[c - a->records];
}

/* From the call that came from `site` outwards: not what the library itself called. */
static void note_calls(boxroot r, record *c, int which, bxr_site site)
{
  enum { OURS = 8 };
  calls *known = calls_of(r, c);
  if (known == NULL) return;
  void *found[FRAMES + OURS];
  int n = bxr_site_calls(found, FRAMES + OURS), first = 0;
  while (first < n && found[first] != site.address) first++;
  if (first == n) first = 0; /* called where no place is known, or the stack cannot be read */
  for (int i = 0; i < FRAMES; i++)
    bxr_store_relaxed(&known->frames[which][i], first + i < n ? found[first + i] : NULL);
}

static void print_calls(boxroot r, record *c, int which, char const *what)
{
  calls *known = calls_of(r, c);
  for (int i = 0; known != NULL && i < FRAMES; i++) {
    char text[BXR_SITE_TEXT];
    void *address = bxr_load_relaxed(&known->frames[which][i]);
    if (address == NULL) break;
    fprintf(stderr, "boxroot:   %s: %s\n", what, bxr_site_text((bxr_site){ NULL, address, 0 }, text));
  }
}

/* --- the public call that this thread is in ----------------------------------------------------------------------- */

static BXR_THREAD_LOCAL bxr_site current_call;

bxr_site bxr_account_enter(bxr_site here)
{
  bxr_site outer = current_call;
  current_call = here;
  return outer;
}

void bxr_account_leave(bxr_site outer) { current_call = outer; }

/* --- faults ------------------------------------------------------------------------------------------------------- */

__attribute__((noreturn)) static void fault_about(char const *what, bxr_site here, char const *kind, boxroot r,
                                                  record *c)
{
  char text[3][BXR_SITE_TEXT], call[BXR_SITE_TEXT + 20] = "", ended[BXR_SITE_TEXT + 20] = "";
  if (bxr_site_is_known(here)) snprintf(call, sizeof(call), " called at %s;", bxr_site_text(here, text[0]));
  if (c == NULL) bxr_fault("%s: foreign pointer:%s %p is not a root", what, call, (void *)r);
  bxr_site created = bxr_site_load(&c->created), deleted = bxr_site_load(&c->deleted);
  if (!bxr_site_is_known(created)) bxr_fault("%s: foreign pointer:%s %p was never a root", what, call, (void *)r);
  if (bxr_site_is_known(deleted)) snprintf(ended, sizeof(ended), ", deleted at %s", bxr_site_text(deleted, text[1]));
  print_calls(r, c, CREATED, "created");
  print_calls(r, c, DELETED, "deleted");
  bxr_site_text(created, text[2]);
  bxr_fault("%s: %s of root %p;%s the root was created at %s%s", what, kind, (void *)r, call, text[2], ended);
}

void bxr_account_check(boxroot r, char const *what, bxr_site here)
{
  record *c = find_record(r);
  uint32_t state = c == NULL ? BXR_SLOT_FREE : bxr_load_acquire(&c->state);
  if (state == BXR_SLOT_TORN_DOWN) fault_about(what, here, "use after teardown", r, c);
  if (state != BXR_SLOT_LIVE) fault_about(what, here, "use after delete", r, c);
}

void bxr_account_fault_no_lock(boxroot r, char const *what, bxr_site here)
{
  fault_about(what, here, "use without the domain lock", r, find_record(r));
}

void bxr_account_fault_written(boxroot r)
{
  fault_about("memory of a root", (bxr_site){ 0 }, "write after delete", r, find_record(r));
}

/* --- the life of a slot ------------------------------------------------------------------------------------------- */

void bxr_account_create(boxroot r)
{
  record *c = find_record(r);
  uint32_t state = bxr_load_acquire(&c->state);
  if (state != BXR_SLOT_FREE && state != BXR_SLOT_TORN_DOWN)
    bxr_fault("assertion failed: slot %p handed out in state %d", (void *)r, (int)state);
  bxr_site_store(&c->created, current_call);
  bxr_site_store(&c->deleted, (bxr_site){ 0 });
  note_calls(r, c, CREATED, current_call);
  bxr_store_release(&c->state, BXR_SLOT_LIVE);
  bxr_add_relaxed(&live_roots, 1);
}

static void end_root(boxroot r, record *c, char const *what, bxr_site here)
{
  uint32_t state = BXR_SLOT_LIVE;
  if (c == NULL) fault_about(what, here, "", r, c);
  while (!bxr_cas_seq_cst(&c->state, &state, BXR_SLOT_DELETED)) {
    if (state == BXR_SLOT_TORN_DOWN) fault_about(what, here, "use after teardown", r, c);
    if (state != BXR_SLOT_LIVE) fault_about(what, here, "double delete", r, c);
  }
  bxr_site_store(&c->deleted, here);
  note_calls(r, c, DELETED, here);
  bxr_add_relaxed(&live_roots, -1);
}

void bxr_account_delete(boxroot r, bxr_site here) { end_root(r, find_record(r), "boxroot_delete", here); }

void bxr_account_move(boxroot from, boxroot to)
{
  record *old = find_record(from), *new = find_record(to);
  bxr_site_store(&new->created, bxr_site_load(&old->created));
  calls *a = calls_of(from, old), *b = calls_of(to, new);
  for (int i = 0; a != NULL && b != NULL && i < FRAMES; i++)
    bxr_store_relaxed(&b->frames[CREATED][i], bxr_load_relaxed(&a->frames[CREATED][i]));
  end_root(from, old, "boxroot_modify", current_call);
}

void bxr_account_reset(void)
{
  for (account *a = bxr_load_acquire(&accounts); a != NULL; a = bxr_load_relaxed(&a->next))
    for (record *c = a->records; c < a->records + RECORDS; c++) {
      uint32_t state = bxr_load_acquire(&c->state);
      if (state == BXR_SLOT_LIVE) bxr_store_release(&c->state, BXR_SLOT_TORN_DOWN);
      else if (state != BXR_SLOT_FREE && state != BXR_SLOT_TORN_DOWN) bxr_store_release(&c->state, BXR_SLOT_FREE);
    }
  bxr_store_relaxed(&live_roots, (uint64_t)0);
}

static void release_node(void **node, int level)
{
  for (unsigned i = 0; i < FAN_OUT; i++) {
    if (node[i] == NULL) continue;
    if (level > 0) release_node(node[i], level - 1);
    else free(((account *)node[i])->calls);
    free(node[i]);
    node[i] = NULL;
  }
}

void bxr_account_release(void)
{
  accounts = NULL;
  release_node(top, LEVELS - 1);
}

bool bxr_account_is_torn_down(boxroot r)
{
  record *c = find_record(r);
  return c != NULL && bxr_load_acquire(&c->state) == BXR_SLOT_TORN_DOWN;
}

/* --- live roots --------------------------------------------------------------------------------------------------- */

uint64_t bxr_account_live(void) { return bxr_load_relaxed(&live_roots); }

size_t bxr_account_live_sites(bxr_site_count *places, size_t most)
{
  size_t n = 0;
  for (account *a = bxr_load_acquire(&accounts); a != NULL; a = bxr_load_relaxed(&a->next))
    for (record *c = a->records; c < a->records + RECORDS && n < most; c++)
      if (bxr_load_acquire(&c->state) == BXR_SLOT_LIVE) places[n++] = (bxr_site_count){ bxr_site_load(&c->created), 1 };
  return n;
}
#endif
