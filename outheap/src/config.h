/* SPDX-License-Identifier: MIT */
/* Sizes and switches. Sizes are powers of two, given by their logarithm; tests make them smaller. */
#ifndef OH_CONFIG_H
#define OH_CONFIG_H

#include <stddef.h>
#include <stdint.h>

/* A chunk: the unit in which address space is reserved and classified. */
#ifndef OH_CHUNK_LOG
#define OH_CHUNK_LOG 28
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

#endif
