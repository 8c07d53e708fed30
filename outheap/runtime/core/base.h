/* SPDX-License-Identifier: MIT */
/* What every file is compiled with: sizes and switches, atomic accesses, messages, refusals of the system, checks. */
#ifndef OH_BASE_H
#define OH_BASE_H

#include <stddef.h>
#include <stdint.h>

/* --- sizes and switches: powers of two, given by their logarithm; tests make them smaller ------------------------- */

/* Where memory comes from. 0: mmap; 1: one area that grows at its end (os_sbrk.c), for systems that have nothing
   else. */
#ifndef OH_SBRK
#define OH_SBRK 0
#endif
/* A chunk: the unit in which address space is reserved and classified. In an area that grows at its end up to a chunk
   is left out before each piece. */
#ifndef OH_CHUNK_LOG
#define OH_CHUNK_LOG (OH_SBRK ? 24 : 28)
#endif
/* A large page: the unit in which memory is committed and purged. It has the size of the processor's huge pages. */
#ifndef OH_PAGE_LOG
#define OH_PAGE_LOG 21
#endif
/* The table covers addresses below 2^OH_ADDRESS_BITS. The heap is never placed above that limit, and everything above
   it is foreign. So wider or narrower address spaces need nothing else, except that static data should lie below the
   limit. Linux gives user programs 2^47 bytes on x86-64 and 2^48 on arm64. */
#ifndef OH_ADDRESS_BITS
#ifdef __aarch64__
#define OH_ADDRESS_BITS 48
#else
#define OH_ADDRESS_BITS 47
#endif
#endif
/* A pool of OCaml 5's major heap. */
#ifndef OH_POOL_LOG
#define OH_POOL_LOG 15
#endif

#define OH_CHUNK ((size_t)1 << OH_CHUNK_LOG)
#define OH_PAGE ((size_t)1 << OH_PAGE_LOG)
#define OH_POOL ((size_t)1 << OH_POOL_LOG)
#define OH_PAGES_PER_CHUNK ((size_t)1 << (OH_CHUNK_LOG - OH_PAGE_LOG))
#define OH_POOLS_PER_PAGE ((size_t)1 << (OH_PAGE_LOG - OH_POOL_LOG))

/* The heap is placed below this address. The last chunk of an address space that the table covers as a whole is left
   out, so that the end of each piece is a number. */
#if UINTPTR_MAX >> OH_ADDRESS_BITS != 0
#define OH_ADDRESS_LIMIT ((size_t)1 << OH_ADDRESS_BITS)
#define OH_IS_BEYOND(address) ((address) >> OH_ADDRESS_BITS != 0)
#else
#define OH_ADDRESS_LIMIT ((size_t)0 - OH_CHUNK)
#define OH_IS_BEYOND(address) ((address) >= OH_ADDRESS_LIMIT)
#endif

/* How the marker and a reservation agree on a chunk's kind (table.h). 1: taint; 0: dependency ordering. */
#ifndef OH_TAINT
#define OH_TAINT 1
#endif

/* The checked build: invariants are checked after each operation. */
#ifndef OH_DEBUG
#define OH_DEBUG 0
#endif

/* The marking loop counts the words that it reads. */
#ifndef OH_COUNT
#define OH_COUNT 0
#endif

#define OH_ROUND_DOWN(x, unit) ((x) & ~((__typeof__(x))(unit) - 1))
#define OH_ROUND_UP(x, unit) OH_ROUND_DOWN((x) + (unit) - 1, unit)

_Static_assert(OH_PAGES_PER_CHUNK >= 1 && OH_POOLS_PER_PAGE >= 1 && OH_POOLS_PER_PAGE <= 64, "sizes");
_Static_assert(OH_ADDRESS_BITS > OH_CHUNK_LOG && OH_ADDRESS_BITS <= 57, "width of the table");

/* --- atomic accesses, with the memory order in each name ---------------------------------------------------------- */

/* Orders in use, and why:
   relaxed   counters; entries of the table and bytes of page.h, since whoever holds a pointer has them ordered already
             (table.h); reach bits, which are read while all domains are stopped (region.h);
   acquire,  ranges and their version, so that a reader that saw a new word also sees the new version (ranges.c);
   release   records that are filled before other threads can find them (page.h, region.c); an entry of the table that
             becomes that of a revoked region (table.c); the first installation of a handler (header.c);
   acq_rel   the bits of tracked memory, which are set after a store and cleared before a load (region.h); the first
             thread that reaches a tracked region in a cycle; the list of regions that wait for the marker when it is
             taken as a whole;
   seq_cst   every compare-and-swap, for there is no weaker one here; the flag of the report (table.h, pointer.c): a
             thread that taints a chunk reads the flag afterwards, and a thread that sets the flag sweeps the table
             afterwards, so that at least one of them sees the other; the end of the range of the heap (table.c). */
#define oh_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define oh_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define oh_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define oh_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define oh_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define oh_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define oh_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define oh_fetch_or_relaxed(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define oh_or_acq_rel(p, v) ((void)__atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL))
#define oh_and_acq_rel(p, v) ((void)__atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL))
#define oh_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define oh_fetch_add_seq_cst(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
/* On failure *expected becomes the value that was found. Never fails spuriously. */
#define oh_cas_seq_cst(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* --- messages on the standard error output; nothing is allocated -------------------------------------------------- */

/* Prints "outheap: ", the message and a newline. Keeps errno. */
__attribute__((format(printf, 1, 2))) void oh_log(char const *format, ...);

/* Writes a text as a whole, as far as the descriptor takes it. Result: 0, or why it takes no more. Keeps errno. */
int oh_log_write(int descriptor, char const *text, size_t length);

/* The same as oh_log, and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void oh_log_abort(char const *format, ...);

/* --- refusals ----------------------------------------------------------------------------------------------------- */

/* What the system refused, and the program goes on without. Each refusal is counted; the first of a kind is also
   printed, if that was asked for. */

enum oh_notice {
  OH_NOTICE_ZONE,   /* the heap's part of the address space: something else lies there, or a limit is reached */
  OH_NOTICE_MEMORY, /* address space or memory: a limit, or none is left */
  OH_NOTICE_HUGE,   /* advice on huge pages */
  OH_NOTICE_HUGETLB, /* huge pages of the system's pool */
  OH_NOTICES
};

/* Any thread, with any lock. `bytes`: what was asked for. Keeps errno. Cost: an addition. */
void oh_notice(enum oh_notice, size_t bytes);

/* From now on the first one of these kinds is printed; `kinds` has a bit for each. */
void oh_notice_show(unsigned kinds);

size_t oh_notice_count(enum oh_notice);

/* --- checks that end the program with a message ------------------------------------------------------------------- */

#define OH_CHECK_STRING_(x) #x
#define OH_CHECK_STRING(x) OH_CHECK_STRING_(x)

/* In every build: for validators. */
#define OH_CHECK(condition) \
  ((condition) ? (void)0 : oh_log_abort("%s", __FILE__ ":" OH_CHECK_STRING(__LINE__) ": " #condition))

/* In the checked build only. A release build never relies on the condition. */
#if OH_DEBUG
#define OH_ASSERT(condition) OH_CHECK(condition)
#else
#define OH_ASSERT(condition) ((void)sizeof(condition))
#endif

/* The same: somebody has this lock of pthread.h. It may be another thread than the caller, so tests with one thread see
   more. */
#define OH_ASSERT_LOCKED(mutex) OH_ASSERT(pthread_mutex_trylock(mutex) != 0)

#endif
