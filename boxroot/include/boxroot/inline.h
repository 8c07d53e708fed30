/* SPDX-License-Identifier: MIT */
/* The hot paths of boxroot.h. Everything here is private: names that begin with bxr_ or BXR_ may change at any time.

   A pool is an aligned piece of memory that starts with a bxr_pool_head; a root is a slot of a pool, so clearing the
   low bits of a root gives its pool. A live slot holds its value; a free slot holds the link of the pool's free list,
   tagged odd, so that code that looks for pointers takes it for an immediate. The number 1 ends the list. */
#ifndef BOXROOT_INLINE_H
#define BOXROOT_INLINE_H

#include "config.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
extern "C" {
#endif

#define BXR_LIKELY(a) __builtin_expect(!!(a), 1)
#define BXR_UNLIKELY(a) __builtin_expect(!!(a), 0)
#define BXR_THREAD_LOCAL __thread

/* Written where a word must equal no domain, not even the absent one (NULL). */
#define BXR_NOBODY ((void *)1)
#define BXR_FREE_END ((uintptr_t)1)

/* Each of the first three words names the domain to which the pool belongs (it equals that domain's bxr_self()) iff the
   domain may do the operation directly, that is, as the inline functions below do it. All three are atomic: any thread
   may compare them. They are seldom written, and have a cache line without words that are: threads that delete another
   domain's roots read this line only, and the domain that creates in the pool writes the next one. */
typedef struct bxr_pool_head {
  void *free_owner;  /* may free a slot */
  void *alloc_owner; /* may take a free slot for a new root */
  void *store_owner; /* may store any value in a live slot */
  void *others[5];   /* the library's; they fill the line */
  uintptr_t free;    /* free list: address of the first free slot + 1, or BXR_FREE_END. Owned by the domain */
  uint32_t freed;    /* slots freed since the pool was last known to be full. Owned by the domain */
  uint32_t active;   /* slots [0, active) have been on the free list. Owned by the domain */
} bxr_pool_head;

/* The pool from which this thread last took a slot; never NULL. It may be out of date (not in OCaml 4.14): its words
   tell. The memory of a pool that was purged can read as zeroes; then alloc_owner equals the absent domain (NULL), but
   `free` is not a slot. */
#if BXR_OCAML5
extern __thread bxr_pool_head *bxr_cache BXR_LINK_NAME(cache) BXR_TLS_MODEL;
#else /* one domain, one current pool */
extern bxr_pool_head *bxr_cache BXR_LINK_NAME(cache);
#endif

/* The part of a domain's record that boxroot_create_in and boxroot_delete_in read. */
typedef struct bxr_domain_head {
  void *state;           /* == bxr_self() of the domain (atomic) */
  bxr_pool_head *source; /* the domain's current pool, or one without slots; never NULL. Owned by the domain */
} bxr_domain_head;

/* Identifies the domain whose lock this thread holds; NULL when it holds none. */
#if BOXROOT_THREAD_UNSAFE
extern void *bxr_only_domain BXR_AGREED_NAME(only_domain);
#define bxr_self() bxr_only_domain
#elif BXR_OCAML5 && defined(HAS_FULL_THREAD_VARIABLES)
/* The runtime's Caml_state_opt under a name of our own: with our model, and without the test for a constructor that C++
   adds. Weak, for programs without OCaml; there the linker drops all code that would read it. */
extern __thread void *bxr_self_word
  __asm__(BXR_STRING(__USER_LABEL_PREFIX__) "caml_state") BXR_TLS_MODEL __attribute__((weak));
#define bxr_self() bxr_self_word
#elif BXR_OCAML5
#define bxr_self() ((void *)Caml_state_opt)
#else
/* Hooks on the master lock keep this word, see src/runtime/ocaml4_token.h. Another thread may overwrite it, so each
   operation must read it again, also in a loop: the empty asm says that it may have changed, and costs no
   instruction. */
extern __thread void *bxr_lock BXR_LINK_NAME(lock) BXR_TLS_MODEL;
#define bxr_self() (__extension__({ __asm__ volatile("" : "+m"(bxr_lock)); bxr_lock; }))
#endif

#define BXR_POOL_SIZE ((uintptr_t)1 << BOXROOT_POOL_LOG_SIZE)
#define bxr_pool_of(r) ((bxr_pool_head *)((uintptr_t)(r) & ~(BXR_POOL_SIZE - 1)))
#define bxr_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)

#if BOXROOT_DEBUG
#include "checked.h"
#else
boxroot bxr_create_slow(value v) BXR_AGREED_NAME(create_slow);
boxroot bxr_create_in_slow(boxroot_domain d, value v) BXR_AGREED_NAME(create_in_slow);
void bxr_delete_slow(boxroot r) BXR_AGREED_NAME(delete_slow);
bool bxr_modify_slow(boxroot *r, value v) BXR_AGREED_NAME(modify_slow);

BXR_INLINE_HERE value boxroot_get(boxroot r)
{
  return *(value *)r;
}

BXR_INLINE_HERE value const *boxroot_get_ref(boxroot r)
{
  return (value const *)r;
}

BXR_INLINE_HERE boxroot boxroot_create(value v)
{
#if BXR_OCAML5
  bxr_pool_head *pool = bxr_cache;
  if (BXR_LIKELY(bxr_load_relaxed(&pool->alloc_owner) == bxr_self())) {
#else
  if (BXR_LIKELY(bxr_self() != NULL)) {
    bxr_pool_head *pool = bxr_cache;
#endif
    uintptr_t free = pool->free;
    if (BXR_LIKELY(free > BXR_FREE_END)) {
      uintptr_t next = *(uintptr_t *)(free - 1);
      *(value *)(free - 1) = v;
      /* The order of these stores is a matter of speed: the other way round, a processor that forwards stores to loads
         takes twice as long in a row of creations (measured on Zen 5). */
      __asm__ volatile("" ::: "memory");
      pool->free = next;
      return (boxroot)(free - 1);
    }
  }
  return bxr_create_slow(v);
}

/* With OCaml 4.14 the handle is not enough: a thread that holds the lock may first have to take the token from another
   thread. */
BXR_INLINE_HERE boxroot boxroot_create_in(boxroot_domain d, value v)
{
#if BXR_OCAML5
  bxr_pool_head *pool = ((bxr_domain_head *)d)->source;
  uintptr_t free = pool->free;
  if (BXR_LIKELY(free != BXR_FREE_END)) {
    uintptr_t next = *(uintptr_t *)(free - 1);
    *(value *)(free - 1) = v;
    __asm__ volatile("" ::: "memory");
    pool->free = next;
    return (boxroot)(free - 1);
  }
  return bxr_create_in_slow(d, v);
#else
  return BXR_UNLIKELY((uintptr_t)d & 1) ? bxr_create_in_slow(d, v) : boxroot_create(v); /* odd: of a storage */
#endif
}

BXR_INLINE_HERE void boxroot_delete(boxroot r)
{
#if !BOXROOT_FORCE_REMOTE
  bxr_pool_head *pool = bxr_pool_of(r);
  if (BXR_LIKELY(bxr_load_relaxed(&pool->free_owner) == bxr_self())) {
    *(uintptr_t *)r = pool->free;
    pool->free = (uintptr_t)r + 1;
    pool->freed++;
    return;
  }
#endif
  bxr_delete_slow(r);
}

BXR_INLINE_HERE void boxroot_delete_in(boxroot_domain d, boxroot r)
{
#if !BOXROOT_FORCE_REMOTE && BXR_OCAML5
  bxr_pool_head *pool = bxr_pool_of(r);
  if (BXR_LIKELY(bxr_load_relaxed(&pool->free_owner) == ((bxr_domain_head *)d)->state)) {
    *(uintptr_t *)r = pool->free;
    pool->free = (uintptr_t)r + 1;
    pool->freed++;
    return;
  }
  bxr_delete_slow(r);
#else
  (void)d;
  boxroot_delete(r);
#endif
}

BXR_INLINE_HERE bool boxroot_modify(boxroot *r, value v)
{
  if (BXR_LIKELY(bxr_load_relaxed(&bxr_pool_of(*r)->store_owner) == bxr_self())) {
    *(value *)*r = v;
    return true;
  }
  return bxr_modify_slow(r, v);
}
#endif /* !BOXROOT_DEBUG */

#ifdef __cplusplus
} /* extern "C" */
#pragma GCC diagnostic pop
#endif

#endif
