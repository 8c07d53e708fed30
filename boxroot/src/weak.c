/* SPDX-License-Identifier: MIT */
/* Weak roots (boxroot/weak.h). A weak pool is one weak array of the runtime, which a root keeps alive, and says which
   of its keys are in use; a weak root is the address of the pool and the number of a key. The runtime does not divide
   its work on an array, so the arrays are small.

   A pool's home is the identity of the domain that made it. The domain that has the identity takes the keys of roots
   that are deleted with its lock back. A deletion elsewhere sets a bit in a word of the pool (acq_rel: the deleter's
   last use of the key happens before the next). The thread that finds the word empty puts it on its home's list
   `returned`; no thread touches the pool after it has set a bit in a word that is not empty. The domain empties the
   words that are on the list. So a pool that has all its keys back is touched by no other thread, and can be freed.

   New keys come from pools that the domain itself has made. The array of an ended domain is in the care of another one,
   which shortens the keys and empties them while this one runs: a key that is set meanwhile could be lost. Such a pool
   is abandoned: it is freed when all its keys are back.

   Deletion leaves the value in the array: it keeps nothing alive. Idea: one weak array for many weak roots, as the
   module Weak of OCaml's library has one for many values. */
#ifndef BXR_DEFINES_FUNCTIONS
#define BXR_DEFINES_FUNCTIONS /* boxroot/config.h */
#endif
#include "api.h"
#include <boxroot/weak.h>
#include "checked/account.h"
#include "os.h"
#include "runtime.h"
#include <stdlib.h>

enum {
  MOST_KEYS = 254, /* a weak root is the address of its pool, and 1 + the number of its key */
  KEYS = BXR_CAPACITY < MOST_KEYS ? BXR_CAPACITY : MOST_KEYS,
  WORDS = (MOST_KEYS + 63) / 64,
  MOST_EMPTY = 8, /* pools without keys in use that a home keeps, so that roots that come and go do not make arrays */
  ALIGNMENT = 256
};

typedef struct weak_word {
  uint64_t deleted; /* keys that were deleted elsewhere (atomic). != 0: the word is on the list, or about to be */
  struct weak_word *next;
} weak_word;

typedef struct weak_home weak_home;

enum { WITH_ROOM, FULL, ABANDONED, LISTS };

/* Invariants, for the holder of the home's lock: `used` is the number of keys that are not free; a key is free, or in
   use, or deleted elsewhere; the pool is on the list home->lists[list], and unless it is abandoned,
   (list == FULL) == (used == KEYS). home->empty is the number of pools on the list WITH_ROOM with used == 0, at most
   MOST_EMPTY (in the checked build there are none but the newest). A pool with array == NULL is on the list of those
   that are void, and nothing else counts. */
typedef struct weak_pool {
  boxroot array;
  weak_home *home;
  struct weak_pool *next, *previous;
  uint64_t free[WORDS];
  weak_word words[WORDS];
  uint16_t used, from; /* the word where the next key is looked for */
  uint8_t list;
#if BOXROOT_DEBUG
  uint64_t magic;
  struct weak_pool *older; /* of all pools */
  uint8_t state[KEYS];     /* (atomic) */
  bxr_site created[KEYS], deleted[KEYS];
#endif
} weak_pool;

/* What an identity of a domain has: a line of its own, since others write to `returned`. */
struct weak_home {
  weak_pool *lists[LISTS];
  weak_word *returned; /* (atomic) */
  uint64_t number;     /* of the domain that makes pools here */
  unsigned empty;
  weak_pool *memory; /* of void pools, for new ones */
} __attribute__((aligned(64)));

static weak_home homes[BXR_MAX_DOMAINS];
static weak_pool *void_pools; /* (atomic) */
#if BOXROOT_DEBUG
static weak_pool *all_pools; /* (atomic); their memory is kept */
#endif

static weak_pool *pool_of(boxroot_weak w) { return (weak_pool *)((uintptr_t)w & ~(uintptr_t)(ALIGNMENT - 1)); }
static unsigned key_of_weak(boxroot_weak w) { return (unsigned)((uintptr_t)w & (ALIGNMENT - 1)) - 1; }

/* --- lists of pools ----------------------------------------------------------------------------------------------- */

static void add(weak_pool *p)
{
  weak_pool **first = &p->home->lists[p->list];
  p->previous = NULL;
  p->next = *first;
  if (*first != NULL) (*first)->previous = p;
  *first = p;
}

static void take_off(weak_pool *p)
{
  if (p->previous != NULL) p->previous->next = p->next;
  else p->home->lists[p->list] = p->next;
  if (p->next != NULL) p->next->previous = p->previous;
}

static void move(weak_pool *p, int list)
{
  take_off(p);
  p->list = (uint8_t)list;
  add(p);
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

/* Puts the pools from first to last on the list of those that are void: those that a teardown has left; in the checked
   build those without keys in use, too, so that a use of deleted weak roots finds their records. */
static void keep_memory(weak_pool *first, weak_pool *last)
{
  weak_pool *head = bxr_load_relaxed(&void_pools);
  do last->next = head;
  while (!bxr_cas_acq_rel(&void_pools, &head, first));
}

/* The list is taken as a whole: so no pool of it can come and go between a look at the first and its replacement. */
static weak_pool *memory_for_pool(weak_home *home)
{
  if (home->memory == NULL && bxr_load_relaxed(&void_pools) != NULL)
    home->memory = bxr_exchange_acq_rel(&void_pools, (weak_pool *)NULL);
  weak_pool *p = home->memory;
  if (p != NULL) {
    home->memory = p->next;
    return p;
  }
  p = aligned_alloc(ALIGNMENT, (sizeof(weak_pool) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
#if BOXROOT_DEBUG
  if (p == NULL) return NULL;
  *p = (weak_pool){ .older = bxr_load_relaxed(&all_pools) };
  while (!bxr_cas_acq_rel(&all_pools, &p->older, p)) continue;
#endif
  return p;
}

static boxroot create_array(value array)
{
#if BOXROOT_DEBUG
  bxr_site outer = bxr_account_enter(BXR_SITE_OWN);
  boxroot r = bxr_create_slow(array);
  bxr_account_leave(outer);
  return r;
#else
  return bxr_create_slow(array);
#endif
}

static void delete_array(boxroot r)
{
#if BOXROOT_DEBUG
  bxr_account_delete(r, "boxroot_weak_delete", (bxr_site){ 0 });
#endif
  bxr_delete_slow(r);
}

/* A pool with all its keys free. NULL: no memory. */
static weak_pool *make_pool(weak_home *home)
{
  value array = bxr_runtime_weak_array(KEYS);
  if (array == 0) return NULL;
  boxroot r = create_array(array);
  if (r == NULL) return NULL;
  weak_pool *p = memory_for_pool(home);
  if (p == NULL) {
    delete_array(r);
    return NULL;
  }
#if BOXROOT_DEBUG
  weak_pool *older = p->older;
#endif
  *p = (weak_pool){ .array = r, .home = home, .list = WITH_ROOM };
  for (unsigned i = 0; i < KEYS; i++) p->free[i / 64] |= (uint64_t)1 << (i % 64);
#if BOXROOT_DEBUG
  p->older = older;
  p->magic = (uintptr_t)p ^ BXR_DELETED_WORD;
#endif
  home->empty++;
  add(p);
  return p;
}

/* The pool has all its keys back. */
static void is_empty(weak_pool *p)
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
static void give_back(weak_pool *p, unsigned word, uint64_t keys, unsigned n)
{
  BXR_ASSERT((p->free[word] & keys) == 0);
  p->free[word] |= keys;
  p->used = (uint16_t)(p->used - n);
  if (p->list == FULL) move(p, WITH_ROOM);
  if (BXR_UNLIKELY(p->used == 0)) is_empty(p);
}

/* Takes back what was deleted elsewhere. */
static void drain(weak_home *home)
{
  weak_word *w = bxr_load_relaxed(&home->returned);
  if (w == NULL) return;
  w = bxr_exchange_acq_rel(&home->returned, (weak_word *)NULL);
  while (w != NULL) {
    weak_word *next = w->next; /* another thread may put the word on the list again once it is empty */
    weak_pool *p = (weak_pool *)((uintptr_t)w & ~(uintptr_t)(ALIGNMENT - 1));
    uint64_t keys = bxr_exchange_acq_rel(&w->deleted, (uint64_t)0);
    give_back(p, (unsigned)(w - p->words), keys, (unsigned)__builtin_popcountll(keys));
    w = next;
  }
}
_Static_assert(offsetof(weak_pool, words) + WORDS * sizeof(weak_word) <= ALIGNMENT, "a word's address tells its pool");

/* Another domain had this identity: what it has made is left alone, but for what can be freed. */
static __attribute__((noinline, cold)) void take_over(weak_home *home)
{
  for (int list = WITH_ROOM; list <= FULL; list++)
    for (weak_pool *p; (p = home->lists[list]) != NULL;) {
      move(p, ABANDONED);
      if (p->used == 0) is_empty(p);
    }
  home->empty = 0;
  home->number = bxr_runtime_domain_number();
  drain(home);
}

static void delete_elsewhere(weak_pool *p, unsigned key)
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

/* The arrays go with the roots that hold them. Weak roots may still be deleted, so the memory of their pools stays. */
static void tear_down(void)
{
  for (unsigned id = 0; id < BXR_MAX_DOMAINS; id++) {
    weak_home *home = &homes[id];
    for (int list = 0; list < LISTS; list++)
      for (weak_pool *p = home->lists[list], *next; p != NULL; p = next) {
        next = p->next;
        p->array = NULL;
        keep_memory(p, p);
      }
    for (weak_pool *p = home->memory, *next; p != NULL; p = next) {
      next = p->next;
      keep_memory(p, p);
    }
    if (home->number != 0) *home = (weak_home){ .number = 0 };
  }
}

/* The library is being unloaded, after a teardown: nobody is left who could delete a weak root. */
__attribute__((destructor(101))) static void when_weak_unloaded(void)
{
  if (void_pools == NULL || !bxr_api_is_torn_down() || !bxr_object_is_unloading()) return;
  for (weak_pool *p = void_pools, *next; p != NULL; p = next) {
    next = p->next;
    free(p);
  }
  void_pools = NULL;
}

#if BOXROOT_DEBUG
enum { KEY_FREE, KEY_LIVE, KEY_DELETED };

/* The weak roots that are live, for reports (bxr_account_include). */
static size_t list_live(bxr_site_count *sites, size_t most)
{
  size_t n = 0;
  for (weak_pool *p = bxr_load_acquire(&all_pools); p != NULL; p = bxr_load_relaxed(&p->older))
    for (unsigned key = 0; key < KEYS && bxr_load_relaxed(&p->array) != NULL; key++) {
      if (bxr_load_acquire(&p->state[key]) != KEY_LIVE) continue;
      if (n < most) sites[n] = (bxr_site_count){ p->created[key], 1 };
      n++;
    }
  return n;
}
#endif

/* --- the functions of weak.h -------------------------------------------------------------------------------------- */

static unsigned take_key(weak_pool *p)
{
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
  weak_pool *p = home->lists[WITH_ROOM];
  if (BXR_UNLIKELY(p == NULL)) {
    bxr_api_at_teardown(tear_down);
#if BOXROOT_DEBUG
    bxr_account_include(list_live);
#endif
    drain(home);
    p = home->lists[WITH_ROOM];
    if (p == NULL) p = make_pool(home);
    if (p == NULL) {
      bxr_api_fail_no_memory();
      return NULL;
    }
  }
  unsigned key = take_key(p);
  bxr_runtime_weak_set(*(value *)p->array, key, v);
  return (boxroot_weak)((char *)p + 1 + key);
}

static bool get(boxroot_weak w, value *v)
{
  weak_pool *p = pool_of(w);
  return BXR_LIKELY(p->array != NULL) && bxr_runtime_weak_get(*(value *)p->array, key_of_weak(w), v);
}

static void delete(boxroot_weak w)
{
  weak_pool *p = pool_of(w);
  unsigned key = key_of_weak(w);
  if (BXR_UNLIKELY(p->array == NULL)) return;
  if (!BOXROOT_FORCE_REMOTE && bxr_runtime_self() != NULL && p->home == &homes[bxr_runtime_domain()])
    give_back(p, key / 64, (uint64_t)1 << (key % 64), 1);
  else delete_elsewhere(p, key);
}

#if !BOXROOT_DEBUG
boxroot_weak boxroot_weak_create(value v) { return create(v); }
bool boxroot_weak_get(boxroot_weak w, value *v) { return get(w, v); }
void boxroot_weak_delete(boxroot_weak w) { delete(w); }

boxroot boxroot_weak_upgrade(boxroot_weak w)
{
  value v;
  if (BXR_LIKELY(get(w, &v))) return boxroot_create(v);
  errno = 0;
  return NULL;
}
#else
/* --- the checked build -------------------------------------------------------------------------------------------- */

/* Faults unless w is live. `what` was given it at `here`. The result is false after a teardown. */
static bool check(boxroot_weak w, char const *what, bxr_site here)
{
  weak_pool *p = pool_of(w);
  unsigned key = key_of_weak(w);
  char text[3][BXR_SITE_TEXT];
  if (w == NULL || key >= KEYS || p->magic != ((uintptr_t)p ^ BXR_DELETED_WORD))
    bxr_fault("%s: no weak root: called with %p at %s", what, (void *)w, bxr_site_text(here, text[0]));
  if (bxr_load_acquire(&p->state[key]) != KEY_LIVE)
    bxr_fault("%s: use after delete of a weak root: called at %s; it was created at %s, and deleted at %s", what,
              bxr_site_text(here, text[0]), bxr_site_text(p->created[key], text[1]),
              bxr_site_text(p->deleted[key], text[2]));
  return p->array != NULL;
}

static bool checked_weak_get(boxroot_weak w, value *v, char const *what, bxr_site here)
{
  char text[BXR_SITE_TEXT];
  bool is_there = check(w, what, here);
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL && is_there)
    bxr_fault("%s: use without the domain lock: called at %s", what, bxr_site_text(here, text));
  return get(w, v);
}

static boxroot_weak checked_weak_create(value v, bxr_site here)
{
  bxr_site outer = bxr_account_enter(here);
  boxroot_weak w = create(v);
  bxr_account_leave(outer);
  if (w == NULL) return NULL;
  pool_of(w)->created[key_of_weak(w)] = here;
  bxr_store_release(&pool_of(w)->state[key_of_weak(w)], (uint8_t)KEY_LIVE);
  return w;
}

static boxroot checked_weak_upgrade(boxroot_weak w, bxr_site here)
{
  value v;
  if (!checked_weak_get(w, &v, "boxroot_weak_upgrade", here)) {
    errno = 0;
    return NULL;
  }
  bxr_site outer = bxr_account_enter(here);
  boxroot r = bxr_create_slow(v);
  bxr_account_leave(outer);
  return r;
}

static void checked_weak_delete(boxroot_weak w, bxr_site here)
{
  char text[3][BXR_SITE_TEXT];
  weak_pool *p = pool_of(w);
  unsigned key = key_of_weak(w);
  if (w == NULL || key >= KEYS || p->magic != ((uintptr_t)p ^ BXR_DELETED_WORD))
    (void)check(w, "boxroot_weak_delete", here);
  if (p->array == NULL && bxr_load_acquire(&p->state[key]) == KEY_LIVE) return;
  bxr_site created = p->created[key], earlier = p->deleted[key];
  p->deleted[key] = here;
  if (bxr_exchange_acq_rel(&p->state[key], (uint8_t)KEY_DELETED) != KEY_LIVE)
    bxr_fault("boxroot_weak_delete: double delete of a weak root: called at %s; it was created at %s, and deleted "
              "at %s",
              bxr_site_text(here, text[0]), bxr_site_text(created, text[1]), bxr_site_text(earlier, text[2]));
  delete(w);
}

#define CALLER __builtin_return_address(0)
#define HERE ((bxr_site){ file, CALLER, line })
boxroot_weak bxr_weak_create_at(value v, char const *file, int line) { return checked_weak_create(v, HERE); }
bool bxr_weak_get_at(boxroot_weak w, value *v, char const *file, int line)
{
  return checked_weak_get(w, v, "boxroot_weak_get", HERE);
}
boxroot bxr_weak_upgrade_at(boxroot_weak w, char const *file, int line) { return checked_weak_upgrade(w, HERE); }
void bxr_weak_delete_at(boxroot_weak w, char const *file, int line) { checked_weak_delete(w, HERE); }

#define UNKNOWN ((bxr_site){ NULL, CALLER, 0 })
boxroot_weak boxroot_weak_create(value v) { return checked_weak_create(v, UNKNOWN); }
bool boxroot_weak_get(boxroot_weak w, value *v) { return checked_weak_get(w, v, "boxroot_weak_get", UNKNOWN); }
boxroot boxroot_weak_upgrade(boxroot_weak w) { return checked_weak_upgrade(w, UNKNOWN); }
void boxroot_weak_delete(boxroot_weak w) { checked_weak_delete(w, UNKNOWN); }
#undef HERE
#undef UNKNOWN
#undef CALLER
#endif
