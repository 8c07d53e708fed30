/* SPDX-License-Identifier: MIT */
#include "account.h"

#if BOXROOT_DEBUG
#include "../os.h"
#include "../status.h"
#include <stdio.h>
#include <stdlib.h>

extern int backtrace(void **, int) __attribute__((weak)); /* not in every C library */

/* The return addresses of the calls that this thread is in, innermost first, at most `most`. The result is how many; 0
   where the C library cannot tell. Takes microseconds, and may allocate at its first use. */
static int current_calls(void **addresses, int most) { return backtrace == NULL ? 0 : backtrace(addresses, most); }

/* A site that several threads may read and write at the same time. A reader that races with a writer may get parts of
   two sites. */
static bxr_site load_site(bxr_site const *s)
{
  return (bxr_site){ bxr_load_relaxed(&s->file), bxr_load_relaxed(&s->address), bxr_load_relaxed(&s->line) };
}

static void store_site(bxr_site *to, bxr_site s)
{
  bxr_store_relaxed(&to->file, s.file);
  bxr_store_relaxed(&to->address, s.address);
  bxr_store_relaxed(&to->line, s.line);
}

/* --- the entries of slots ----------------------------------------------------------------------------------------- */

/* What is known of a slot. Every field is atomic, since any thread may misuse a root. `state` is changed by a
   read-modify-write wherever two threads may disagree about it, and stored with release after what it stands for. */
typedef struct entry {
  bxr_site created, deleted;
  uint32_t state;
} entry;

enum { ENTRIES = 63 * BXR_CAPACITY };
/* The calls that led to the creation and to the deletion, kept on request. A message about wrong use may have parts of
   two. */
enum { CREATED, DELETED, MOST_CALLS = 16 };
typedef struct calls {
  void *addresses[2][MOST_CALLS];
} calls;

typedef struct account {
  struct account *next;
  uintptr_t segment;
  calls *calls;           /* of entries[i]: calls[i]; NULL: none are kept */
  entry entries[ENTRIES]; /* of pool i: from (i - 1) * BXR_CAPACITY */
} account;

static account *accounts; /* all of them */
static uint64_t live_roots;

/* --- from an address to its entry: a tree over the number of the segment, which only grows ----------------------- */

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

/* The account of a segment; with `make` a new one if there is none. NULL: there is none, or no memory. */
static account *account_of(uintptr_t address, bool make)
{
  uintptr_t number = address / BXR_SEGMENT_SIZE;
  if (number >> (FAN_OUT_LOG * LEVELS) != 0) return NULL;
  void **node = top;
  for (int level = LEVELS - 1; level > 0 && node != NULL; level--)
    node = child(node, number >> (FAN_OUT_LOG * level) & (FAN_OUT - 1), make ? FAN_OUT * sizeof(void *) : 0);
  return node == NULL ? NULL : child(node, number & (FAN_OUT - 1), make ? sizeof(account) : 0);
}

/* NULL unless the address is that of a slot. */
static entry *entry_of(boxroot r)
{
  if ((uintptr_t)r % sizeof(uintptr_t) != 0) return NULL;
  account *a = account_of((uintptr_t)r, false);
  bxr_pool *p = (bxr_pool *)bxr_pool_of(r);
  if (a == NULL || bxr_segment_index(p) == 0 || (uintptr_t *)r < p->slots) return NULL;
  size_t i = (uintptr_t *)r - p->slots;
  return i < BXR_CAPACITY ? &a->entries[(bxr_segment_index(p) - 1) * BXR_CAPACITY + i] : NULL;
}

bxr_slot_state bxr_account_state(uintptr_t const *slot) { return bxr_load_acquire(&entry_of((boxroot)slot)->state); }

/* Sets the state, after what it stands for. */
static void set_state(uintptr_t const *slot, bxr_slot_state state)
{
  bxr_store_release(&entry_of((boxroot)slot)->state, (uint32_t)state);
}

/* --- the calls that led to a site --------------------------------------------------------------------------------- */

/* Whether a variable of the environment is set to something: not empty, and not beginning with 0. */
static bool is_wanted(char const *variable)
{
  char const *s = getenv(variable);
  return s != NULL && *s != '\0' && *s != '0';
}

bool bxr_account_open(void *segment)
{
  account *a = account_of((uintptr_t)segment, true);
  if (a == NULL) return false;
  if (is_wanted("BOXROOT_STACKS") && bxr_load_acquire(&a->calls) == NULL) {
    calls *fresh = calloc(ENTRIES, sizeof(calls)), *other = NULL;
    if (fresh == NULL) return false;
    while (other == NULL)
      if (bxr_cas_seq_cst(&a->calls, &other, fresh)) break;
    if (other != NULL) free(fresh); /* another thread was faster */
  }
  uintptr_t none = 0;
  while (none == 0)
    if (bxr_cas_seq_cst(&a->segment, &none, (uintptr_t)segment)) {
      account *head = bxr_load_relaxed(&accounts);
      do bxr_store_relaxed(&a->next, head);
      while (!bxr_cas_seq_cst(&accounts, &head, a));
      break;
    }
  return true;
}

static calls *calls_of(boxroot r, entry *c)
{
  account *a = account_of((uintptr_t)r, false);
  calls *all = bxr_load_acquire(&a->calls);
  return all == NULL ? NULL : &all[c - a->entries];
}

/* Notes the calls from the one that came from `site` outwards: not what the library itself called. */
static void note_calls(boxroot r, entry *c, int which, bxr_site site)
{
  enum { OURS = 8 };
  calls *known = calls_of(r, c);
  if (known == NULL) return;
  void *found[MOST_CALLS + OURS];
  int n = current_calls(found, MOST_CALLS + OURS), first = 0;
  while (first < n && found[first] != site.address) first++;
  if (first == n) first = 0; /* it was called where no site is known, or the stack cannot be read */
  for (int i = 0; i < MOST_CALLS; i++)
    bxr_store_relaxed(&known->addresses[which][i], first + i < n ? found[first + i] : NULL);
}

static void print_calls(boxroot r, entry *c, int which, char const *what)
{
  calls *known = calls_of(r, c);
  for (int i = 0; known != NULL && i < MOST_CALLS; i++) {
    char text[BXR_SITE_TEXT];
    void *address = bxr_load_relaxed(&known->addresses[which][i]);
    if (address == NULL) break;
    fprintf(stderr, "boxroot:   %s: %s\n", what, bxr_site_text((bxr_site){ NULL, address, 0 }, text));
  }
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* The call that this thread is in has done something that is not allowed with r. */
__attribute__((noreturn)) static void fault_about(char const *fault, boxroot r, entry *c)
{
  bxr_site here = bxr_site_current().site;
  char const *what = bxr_site_function();
  char text[3][BXR_SITE_TEXT], call[BXR_SITE_TEXT + 20] = "", ended[BXR_SITE_TEXT + 20] = "";
  if (bxr_site_is_known(here)) snprintf(call, sizeof(call), " called at %s;", bxr_site_text(here, text[0]));
  if (c == NULL) bxr_fault("%s: foreign pointer:%s %p is not a root", what, call, (void *)r);
  bxr_site created = load_site(&c->created), deleted = load_site(&c->deleted);
  if (!bxr_site_is_known(created)) bxr_fault("%s: foreign pointer:%s %p was never a root", what, call, (void *)r);
  if (bxr_site_is_known(deleted)) snprintf(ended, sizeof(ended), ", deleted at %s", bxr_site_text(deleted, text[1]));
  print_calls(r, c, CREATED, "created");
  print_calls(r, c, DELETED, "deleted");
  bxr_site_text(created, text[2]);
  bxr_fault("%s: %s of root %p;%s the root was created at %s%s", what, fault, (void *)r, call, text[2], ended);
}

bool bxr_account_check(boxroot r)
{
  entry *c = entry_of(r);
  uint32_t state = c == NULL ? BXR_SLOT_FREE : bxr_load_acquire(&c->state);
  if (state == BXR_SLOT_TORN_DOWN && bxr_status_is_torn_down()) return false;
  if (state == BXR_SLOT_TORN_DOWN) fault_about("use after teardown", r, c);
  if (state != BXR_SLOT_LIVE) fault_about("use after delete", r, c);
  return true;
}

void bxr_account_fault_no_lock(boxroot r) { fault_about("use without the domain lock", r, entry_of(r)); }

/* The memory of the deleted root r was written to. */
static __attribute__((noreturn)) void fault_written(boxroot r)
{
  (void)bxr_site_enter("memory of a root", NULL);
  fault_about("write after delete", r, entry_of(r));
}

/* --- the life of a slot ------------------------------------------------------------------------------------------- */

void bxr_account_create(boxroot r)
{
  entry *c = entry_of(r);
  uint32_t state = bxr_load_acquire(&c->state);
  if (state != BXR_SLOT_FREE && state != BXR_SLOT_TORN_DOWN)
    bxr_fault("assertion failed: slot %p handed out in state %d", (void *)r, (int)state);
  bxr_site here = bxr_site_current().site;
  if (!bxr_site_is_own(here)) bxr_add_relaxed(&live_roots, 1);
  store_site(&c->created, here);
  store_site(&c->deleted, (bxr_site){ 0 });
  note_calls(r, c, CREATED, here);
  bxr_store_release(&c->state, BXR_SLOT_LIVE);
}

bool bxr_account_delete(boxroot r)
{
  entry *c = entry_of(r);
  bxr_site here = bxr_site_current().site;
  uint32_t state = BXR_SLOT_LIVE;
  if (c == NULL) fault_about("", r, c);
  while (!bxr_cas_seq_cst(&c->state, &state, BXR_SLOT_DELETED)) {
    if (state == BXR_SLOT_TORN_DOWN && bxr_status_is_torn_down()) return false;
    if (state == BXR_SLOT_TORN_DOWN) fault_about("use after teardown", r, c);
    if (state != BXR_SLOT_LIVE) fault_about("double delete", r, c);
  }
  store_site(&c->deleted, here);
  note_calls(r, c, DELETED, here);
  if (!bxr_site_is_own(load_site(&c->created))) bxr_add_relaxed(&live_roots, -1);
  return true;
}

void bxr_account_delete_all(uintptr_t const *slots, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (bxr_account_state(&slots[i]) == BXR_SLOT_LIVE) (void)bxr_account_delete((boxroot)(uintptr_t)&slots[i]);
}

bool bxr_account_free_all(uintptr_t const *slots, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    bxr_slot_state state = bxr_account_state(&slots[i]);
    if (state == BXR_SLOT_QUARANTINED || state == BXR_SLOT_RELEASED) return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    bxr_slot_state state = bxr_account_state(&slots[i]);
    if (state == BXR_SLOT_LIVE) (void)bxr_account_delete((boxroot)(uintptr_t)&slots[i]);
    if (state == BXR_SLOT_LIVE || state == BXR_SLOT_DELETED) set_state(&slots[i], BXR_SLOT_FREE);
  }
  return true;
}

void bxr_account_move(boxroot from, boxroot to)
{
  entry *old = entry_of(from), *new = entry_of(to);
  store_site(&new->created, load_site(&old->created));
  calls *a = calls_of(from, old), *b = calls_of(to, new);
  for (int i = 0; a != NULL && b != NULL && i < MOST_CALLS; i++)
    bxr_store_relaxed(&b->addresses[CREATED][i], bxr_load_relaxed(&a->addresses[CREATED][i]));
  (void)bxr_account_delete(from);
}

void bxr_account_reset(void)
{
  for (account *a = bxr_load_acquire(&accounts); a != NULL; a = bxr_load_relaxed(&a->next))
    for (entry *c = a->entries; c < a->entries + ENTRIES; c++) {
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

/* --- live roots --------------------------------------------------------------------------------------------------- */

static size_t (*included)(bxr_site_count *sites, size_t most); /* (atomic) */
void bxr_account_include(size_t (*list)(bxr_site_count *sites, size_t most)) { bxr_store_relaxed(&included, list); }

static size_t list_included(bxr_site_count *sites, size_t most)
{
  size_t (*list)(bxr_site_count *, size_t) = bxr_load_relaxed(&included);
  return list == NULL ? 0 : list(sites, most);
}

uint64_t bxr_account_live(void) { return bxr_load_relaxed(&live_roots) + list_included(NULL, 0); }

/* The sites where at most `most` of the live roots were created. The result is how many. */
static size_t live_sites(bxr_site_count *sites, size_t most)
{
  size_t n = 0;
  for (account *a = bxr_load_acquire(&accounts); a != NULL; a = bxr_load_relaxed(&a->next))
    for (entry *c = a->entries; c < a->entries + ENTRIES && n < most; c++)
      if (bxr_load_acquire(&c->state) == BXR_SLOT_LIVE && !bxr_site_is_own(load_site(&c->created)))
        sites[n++] = (bxr_site_count){ load_site(&c->created), 1 };
  size_t more = list_included(sites + n, most - n);
  return more < most - n ? n + more : most;
}

/* --- the quarantine ----------------------------------------------------------------------------------------------- */

_Static_assert(BOXROOT_QUARANTINE >= 1 && (BOXROOT_QUARANTINE & (BOXROOT_QUARANTINE - 1)) == 0, "a power of two");
_Static_assert(BXR_DELETED_WORD % 2 == 1, "not a pointer");

/* The quarantine is a ring. Each call draws a number, puts its slot in the place of that number, and takes out the slot
   that is there: the one that has been in longest, or nearly so when several threads come at once. */
static boxroot ring[BOXROOT_QUARANTINE];
static uint64_t drawn;

static void let_go(boxroot r, void (*release)(boxroot))
{
  if (*(uintptr_t volatile *)r != BXR_DELETED_WORD) fault_written(r);
  set_state((uintptr_t *)r, BXR_SLOT_RELEASED);
  release(r);
}

bool bxr_quarantine_put(boxroot r, uint32_t wider, void (*release)(boxroot))
{
  bxr_slot_state state = bxr_account_state((uintptr_t *)r);
  if (state == BXR_SLOT_RELEASED) {
    set_state((uintptr_t *)r, BXR_SLOT_FREE);
    return false;
  }
  if (state != BXR_SLOT_DELETED) bxr_fault("assertion failed: slot %p freed in state %d", (void *)r, (int)state);
  for (uint32_t i = 0; i <= wider; i++) ((uintptr_t *)r)[i] = BXR_DELETED_WORD;
  set_state((uintptr_t *)r, BXR_SLOT_QUARANTINED);
  boxroot oldest = bxr_exchange_acq_rel(&ring[bxr_fetch_add_acq_rel(&drawn, 1) % BOXROOT_QUARANTINE], r);
  if (oldest != NULL) let_go(oldest, release);
  return true;
}

uint64_t bxr_quarantine_put_bits(uintptr_t *first, uint64_t bits, uint32_t wider, void (*release)(boxroot))
{
  uint64_t kept = 0;
  for (; bits != 0; bits &= bits - 1)
    if (bxr_quarantine_put((boxroot)(first + __builtin_ctzll(bits)), wider, release)) kept |= bits & -bits;
  return kept;
}

bool bxr_quarantine_flush(void (*release)(boxroot))
{
  bool any = false;
  for (size_t i = 0; i < BOXROOT_QUARANTINE; i++) {
    boxroot r = bxr_exchange_acq_rel(&ring[i], (boxroot)NULL);
    if (r == NULL) continue;
    any = true;
    let_go(r, release);
  }
  return any;
}

void bxr_quarantine_reset(void)
{
  for (size_t i = 0; i < BOXROOT_QUARANTINE; i++) bxr_store_relaxed(&ring[i], (boxroot)NULL);
}

/* --- reports of live roots ---------------------------------------------------------------------------------------- */

void bxr_leaks_report(char const *when)
{
  uint64_t live = bxr_account_live();
  fprintf(stderr, "boxroot: %llu root%s live%s\n", (unsigned long long)live, live == 1 ? " is" : "s are", when);
  bxr_site_count *sites = live == 0 ? NULL : malloc(live * sizeof(bxr_site_count));
  if (sites == NULL) return;
  bxr_site_print(sites, live_sites(sites, live), "created at");
  free(sites);
}

static void report_at_exit(void)
{
  if (bxr_account_live() > 0) bxr_leaks_report(" at exit");
}

void bxr_leaks_setup(void)
{
  static bool asked; /* (atomic) */
  if (!is_wanted("BOXROOT_LEAKS") || bxr_load_relaxed(&asked)) return;
  bxr_store_relaxed(&asked, true);
  bxr_object_at_exit(report_at_exit);
}

void bxr_leaks_teardown(void)
{
  if (is_wanted("BOXROOT_LEAKS") && bxr_account_live() > 0) bxr_leaks_report(" at teardown");
}

#endif
