/* SPDX-License-Identifier: MIT */
/* Weak roots (boxroot/weak.h). A weak bundle is one weak array of the runtime, which a root keeps alive, and says which
   of its keys are in use; a weak root is the address of the bundle and the number of a key. The runtime does not divide
   its work on an array, so the arrays are small.

   A bundle's home is the identity of the domain that made it. The domain that has the identity takes the keys of roots
   that are deleted with its lock back. A deletion elsewhere sets a bit in a word of the bundle (acq_rel: the deleter's
   last use of the key happens before the next). The thread that finds the word empty puts it on its home's list
   `returned`; no thread touches the bundle after it has set a bit in a word that is not empty. The domain empties the
   words that are on the list. So a bundle that has all its keys back is touched by no other thread, and can be freed.

   New keys come from bundles that the domain itself has made. The array of an ended domain is in the care of another
   one, which shortens the keys and empties them while this one runs: a key that is set meanwhile could be lost. Such a
   bundle is abandoned: it is freed when all its keys are back.

   Deletion leaves the value in the array: it keeps nothing alive. Idea: one weak array for many weak roots, as the
   module Weak of OCaml's library has one for many values. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include <boxroot/weak.h>
#include "checked/account.h"
#include "delete.h"
#include "os.h"
#include "runtime.h"
#include "status.h"
#include "teardown.h"
#include <stdlib.h>

enum {
  MOST_KEYS = 254, /* a weak root is the address of its bundle, and 1 + the number of its key */
  KEYS = BXR_CAPACITY < MOST_KEYS ? BXR_CAPACITY : MOST_KEYS,
  WORDS = (MOST_KEYS + 63) / 64,
  MOST_EMPTY = 8, /* bundles without keys in use that a home keeps, so that roots that come and go do not make arrays */
  ALIGNMENT = 256
};

typedef struct weak_word {
  uint64_t deleted; /* keys that were deleted elsewhere (atomic). != 0: the word is on the list, or about to be */
  struct weak_word *next;
} weak_word;

typedef struct weak_home weak_home;

enum { WITH_ROOM, FULL, ABANDONED, LISTS };

/* Invariants, for the holder of the home's lock: `used` is the number of keys that are not free; a key is free, or in
   use, or deleted elsewhere; the bundle is on the list home->lists[list], and unless it is abandoned,
   (list == FULL) == (used == KEYS). home->empty is the number of bundles on the list WITH_ROOM with used == 0, at most
   MOST_EMPTY (in the checked build there are none but the newest). A bundle with array == NULL is on the list of those
   that are void, and nothing else counts. */
typedef struct weak_bundle {
  boxroot array;
  weak_home *home;
  struct weak_bundle *next, *previous;
  uint64_t free[WORDS];
  weak_word words[WORDS];
  uint16_t used, from; /* the word where the next key is looked for */
  uint8_t list;
#if BOXROOT_DEBUG
  uint64_t magic;
  struct weak_bundle *older; /* of all bundles */
  uint8_t state[KEYS];     /* (atomic) */
  bxr_site created[KEYS], deleted[KEYS];
#endif
} weak_bundle;

/* What an identity of a domain has: a line of its own, since others write to `returned`. */
struct weak_home {
  weak_bundle *lists[LISTS];
  weak_word *returned; /* (atomic) */
  uint64_t number;     /* of the domain that makes bundles here */
  unsigned empty;
  weak_bundle *memory; /* of void bundles, for new ones */
} __attribute__((aligned(64)));

static weak_home homes[BXR_MAX_DOMAINS];
static weak_bundle *void_bundles; /* (atomic) */
#if BOXROOT_DEBUG
static weak_bundle *all_bundles; /* (atomic); their memory is kept */
#endif

static weak_bundle *bundle_of(boxroot_weak w) { return (weak_bundle *)((uintptr_t)w & ~(uintptr_t)(ALIGNMENT - 1)); }
static unsigned key_of_weak(boxroot_weak w) { return (unsigned)((uintptr_t)w & (ALIGNMENT - 1)) - 1; }

/* --- lists of bundles --------------------------------------------------------------------------------------------- */

static void add(weak_bundle *p)
{
  weak_bundle **first = &p->home->lists[p->list];
  p->previous = NULL;
  p->next = *first;
  if (*first != NULL) (*first)->previous = p;
  *first = p;
}

static void take_off(weak_bundle *p)
{
  if (p->previous != NULL) p->previous->next = p->next;
  else p->home->lists[p->list] = p->next;
  if (p->next != NULL) p->next->previous = p->previous;
}

static void move(weak_bundle *p, int list)
{
  take_off(p);
  p->list = (uint8_t)list;
  add(p);
}

/* --- bundles ------------------------------------------------------------------------------------------------------ */

/* Puts the bundles from first to last on the list of those that are void: those that a teardown has left; in the
   checked build those without keys in use, too, so that a use of deleted weak roots finds them. */
static void keep_memory(weak_bundle *first, weak_bundle *last)
{
  weak_bundle *head = bxr_load_relaxed(&void_bundles);
  do last->next = head;
  while (!bxr_cas_acq_rel(&void_bundles, &head, first));
}

/* The list is taken as a whole: so no bundle of it can come and go between a look at the first and its replacement. */
static weak_bundle *memory_for_bundle(weak_home *home)
{
  if (home->memory == NULL && bxr_load_relaxed(&void_bundles) != NULL)
    home->memory = bxr_exchange_acq_rel(&void_bundles, (weak_bundle *)NULL);
  weak_bundle *p = home->memory;
  if (p != NULL) {
    home->memory = p->next;
    return p;
  }
  p = aligned_alloc(ALIGNMENT, (sizeof(weak_bundle) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
#if BOXROOT_DEBUG
  if (p == NULL) return NULL;
  *p = (weak_bundle){ .older = bxr_load_relaxed(&all_bundles) };
  while (!bxr_cas_acq_rel(&all_bundles, &p->older, p)) continue;
#endif
  return p;
}

static boxroot create_array(value array)
{
#if BOXROOT_DEBUG
  bxr_site_call outer = bxr_site_enter_own();
  boxroot r = bxr_create_slow(array);
  bxr_site_leave(&outer);
  return r;
#else
  return bxr_create_slow(array);
#endif
}

static void delete_array(boxroot r)
{
  if (bxr_account_delete(r)) bxr_delete_slow(r);
}

/* A bundle with all its keys free. NULL: no memory. */
static weak_bundle *make_bundle(weak_home *home)
{
  value array = bxr_runtime_weak_array(KEYS);
  if (array == 0) return NULL;
  boxroot r = create_array(array);
  if (r == NULL) return NULL;
  weak_bundle *p = memory_for_bundle(home);
  if (p == NULL) {
    delete_array(r);
    return NULL;
  }
#if BOXROOT_DEBUG
  weak_bundle *older = p->older;
#endif
  *p = (weak_bundle){ .array = r, .home = home, .list = WITH_ROOM };
  for (unsigned i = 0; i < KEYS; i++) p->free[i / 64] |= (uint64_t)1 << (i % 64);
#if BOXROOT_DEBUG
  p->older = older;
  p->magic = (uintptr_t)p ^ BXR_DELETED_WORD;
#endif
  home->empty++;
  add(p);
  return p;
}

/* The bundle has all its keys back. */
static void is_empty(weak_bundle *p)
{
  if (p->list != ABANDONED && !BOXROOT_DEBUG && p->home->empty < MOST_EMPTY) {
    p->home->empty++;
    return;
  }
  take_off(p);
  delete_array(p->array);
#if BOXROOT_DEBUG
  p->array = NULL;
  keep_memory(p, p);
#else
  free(p);
#endif
}

/* The keys, n of them, are not in use any more. */
static void give_back(weak_bundle *p, unsigned word, uint64_t keys, unsigned n)
{
  BXR_ASSERT(p->home == &homes[bxr_runtime_domain()] && (p->free[word] & keys) == 0);
  p->free[word] |= keys;
  p->used = (uint16_t)(p->used - n);
  if (p->list == FULL) move(p, WITH_ROOM);
  if (BXR_UNLIKELY(p->used == 0)) is_empty(p);
}

/* Takes back what was deleted elsewhere. */
static void drain(weak_home *home)
{
  BXR_ASSERT(home == &homes[bxr_runtime_domain()]);
  weak_word *w = bxr_load_relaxed(&home->returned);
  if (w == NULL) return;
  w = bxr_exchange_acq_rel(&home->returned, (weak_word *)NULL);
  while (w != NULL) {
    weak_word *next = w->next; /* another thread may put the word on the list again once it is empty */
    weak_bundle *p = (weak_bundle *)((uintptr_t)w & ~(uintptr_t)(ALIGNMENT - 1));
    uint64_t keys = bxr_exchange_acq_rel(&w->deleted, (uint64_t)0);
    give_back(p, (unsigned)(w - p->words), keys, (unsigned)__builtin_popcountll(keys));
    w = next;
  }
}
_Static_assert(offsetof(weak_bundle, words) + WORDS * sizeof(weak_word) <= ALIGNMENT,
               "a word's address tells its bundle");

/* Another domain had this identity: what it has made is left alone, but for what can be freed. */
static __attribute__((noinline, cold)) void take_over(weak_home *home)
{
  for (int list = WITH_ROOM; list <= FULL; list++)
    for (weak_bundle *p; (p = home->lists[list]) != NULL;) {
      move(p, ABANDONED);
      if (p->used == 0) is_empty(p);
    }
  home->empty = 0;
  home->number = bxr_runtime_domain_number();
  drain(home);
}

static void delete_elsewhere(weak_bundle *p, unsigned key)
{
  weak_word *w = &p->words[key / 64];
  weak_home *home = p->home;
  uint64_t before = bxr_fetch_add_acq_rel(&w->deleted, (uint64_t)1 << (key % 64));
  if (before != 0) return;
  weak_word *head = bxr_load_relaxed(&home->returned);
  do w->next = head;
  while (!bxr_cas_acq_rel(&home->returned, &head, w));
}

/* --- teardown ----------------------------------------------------------------------------------------------------- */

/* The arrays go with the roots that hold them. Weak roots may still be deleted, so the memory of their bundles
   stays. */
static void tear_down(void)
{
  for (unsigned id = 0; id < BXR_MAX_DOMAINS; id++) {
    weak_home *home = &homes[id];
    for (int list = 0; list < LISTS; list++)
      for (weak_bundle *p = home->lists[list], *next; p != NULL; p = next) {
        next = p->next;
        p->array = NULL;
        keep_memory(p, p);
      }
    for (weak_bundle *p = home->memory, *next; p != NULL; p = next) {
      next = p->next;
      keep_memory(p, p);
    }
    if (home->number != 0) *home = (weak_home){ .number = 0 };
  }
}

/* The library is being unloaded, after a teardown: nobody is left who could delete a weak root. */
__attribute__((destructor(101))) static void when_weak_unloaded(void)
{
  if (void_bundles == NULL || !bxr_status_is_torn_down() || !bxr_object_is_unloading()) return;
  for (weak_bundle *p = void_bundles, *next; p != NULL; p = next) {
    next = p->next;
    free(p);
  }
  void_bundles = NULL;
}

#if BOXROOT_DEBUG
enum { KEY_FREE, KEY_LIVE, KEY_DELETED };

/* The weak roots that are live, for reports (bxr_account_include). */
static size_t list_live(bxr_site_count *sites, size_t most)
{
  size_t n = 0;
  for (weak_bundle *p = bxr_load_acquire(&all_bundles); p != NULL; p = bxr_load_relaxed(&p->older))
    for (unsigned key = 0; key < KEYS && bxr_load_relaxed(&p->array) != NULL; key++) {
      if (bxr_load_acquire(&p->state[key]) != KEY_LIVE) continue;
      if (n < most) sites[n] = (bxr_site_count){ p->created[key], 1 };
      n++;
    }
  return n;
}
#endif

/* --- the functions of weak.h -------------------------------------------------------------------------------------- */

static unsigned take_key(weak_bundle *p)
{
  BXR_ASSERT(p->home == &homes[bxr_runtime_domain()]);
  unsigned word = p->from;
  while (p->free[word] == 0) word = (word + 1) % WORDS;
  unsigned bit = (unsigned)__builtin_ctzll(p->free[word]);
  p->free[word] &= p->free[word] - 1;
  p->from = (uint16_t)word;
  if (BXR_UNLIKELY(p->used == 0)) p->home->empty--;
  if (++p->used == KEYS) move(p, FULL);
  return word * 64 + bit;
}

static boxroot_weak create(value v)
{
  if (!bxr_api_may_hold_weakly(v)) return NULL;
  weak_home *home = &homes[bxr_runtime_domain()];
  if (BXR_UNLIKELY(home->number != bxr_runtime_domain_number())) take_over(home);
  weak_bundle *p = home->lists[WITH_ROOM];
  if (BXR_UNLIKELY(p == NULL)) {
    bxr_teardown_first(tear_down);
#if BOXROOT_DEBUG
    bxr_account_include(list_live);
#endif
    drain(home);
    p = home->lists[WITH_ROOM];
    if (p == NULL) p = make_bundle(home);
    if (p == NULL) {
      bxr_fail(BXR_FAIL_NO_MEMORY);
      return NULL;
    }
  }
  unsigned key = take_key(p);
  bxr_runtime_weak_set(*(value *)p->array, key, v);
  return (boxroot_weak)((char *)p + 1 + key);
}

static bool get(boxroot_weak w, value *v)
{
  weak_bundle *p = bundle_of(w);
  return BXR_LIKELY(p->array != NULL) && bxr_runtime_weak_get(*(value *)p->array, key_of_weak(w), v);
}

static void delete(boxroot_weak w)
{
  weak_bundle *p = bundle_of(w);
  unsigned key = key_of_weak(w);
  if (BXR_UNLIKELY(p->array == NULL)) return;
  if (!BOXROOT_FORCE_REMOTE && bxr_runtime_self() != NULL && p->home == &homes[bxr_runtime_domain()])
    give_back(p, key / 64, (uint64_t)1 << (key % 64), 1);
  else delete_elsewhere(p, key);
}

/* --- the checked build -------------------------------------------------------------------------------------------- */

#if BOXROOT_DEBUG
static void check_address(boxroot_weak w)
{
  weak_bundle *p = bundle_of(w);
  char text[BXR_SITE_TEXT];
  if (w == NULL || key_of_weak(w) >= KEYS || p->magic != ((uintptr_t)p ^ BXR_DELETED_WORD))
    bxr_fault("%s: no weak root: called with %p at %s", bxr_site_function(), (void *)w, bxr_site_here(text));
}

static __attribute__((noreturn)) void fault_deleted(char const *fault, bxr_site created, bxr_site deleted)
{
  char text[3][BXR_SITE_TEXT];
  bxr_fault("%s: %s of a weak root: called at %s; it was created at %s, and deleted at %s", bxr_site_function(), fault,
            bxr_site_here(text[0]), bxr_site_text(created, text[1]), bxr_site_text(deleted, text[2]));
}

/* Faults unless w is live and the domain lock held; after a teardown that is not needed. */
static void check_weak(boxroot_weak w)
{
  check_address(w);
  weak_bundle *p = bundle_of(w);
  unsigned key = key_of_weak(w);
  char text[BXR_SITE_TEXT];
  if (bxr_load_acquire(&p->state[key]) != KEY_LIVE)
    fault_deleted("use after delete", p->created[key], p->deleted[key]);
  bool is_there = p->array != NULL;
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL && is_there)
    bxr_fault("%s: use without the domain lock: called at %s", bxr_site_function(), bxr_site_here(text));
}

static void account_created(boxroot_weak w)
{
  if (w == NULL) return;
  bundle_of(w)->created[key_of_weak(w)] = bxr_site_current().site;
  bxr_store_release(&bundle_of(w)->state[key_of_weak(w)], (uint8_t)KEY_LIVE);
}

/* False after a teardown. */
static bool account_deleted(boxroot_weak w)
{
  check_address(w);
  weak_bundle *p = bundle_of(w);
  unsigned key = key_of_weak(w);
  if (p->array == NULL && bxr_load_acquire(&p->state[key]) == KEY_LIVE) return false;
  bxr_site created = p->created[key], earlier = p->deleted[key];
  p->deleted[key] = bxr_site_current().site;
  if (bxr_exchange_acq_rel(&p->state[key], (uint8_t)KEY_DELETED) != KEY_LIVE)
    fault_deleted("double delete", created, earlier);
  return true;
}
#else
static inline void check_weak(boxroot_weak w) { (void)w; }
static inline void account_created(boxroot_weak w) { (void)w; }
static inline bool account_deleted(boxroot_weak w) { (void)w; return true; }
#endif

/* --- the public functions ----------------------------------------------------------------------------------------- */

boxroot_weak boxroot_weak_create(value v)
{
  BXR_CALL;
  boxroot_weak w = create(v);
  account_created(w);
  return w;
}

bool boxroot_weak_get(boxroot_weak w, value *v)
{
  BXR_CALL;
  check_weak(w);
  return get(w, v);
}

boxroot boxroot_weak_upgrade(boxroot_weak w)
{
  BXR_CALL;
  check_weak(w);
  value v;
  if (BXR_LIKELY(get(w, &v))) {
#if BOXROOT_DEBUG
    return bxr_create_slow(v);
#else
    return boxroot_create(v);
#endif
  }
  errno = 0;
  return NULL;
}

void boxroot_weak_delete(boxroot_weak w) { BXR_CALL; if (account_deleted(w)) delete(w); }
