/* SPDX-License-Identifier: MIT */
/* Sizes. All are powers of two, given by their logarithm; tests make them smaller. */
#ifndef OH_CONFIG_H
#define OH_CONFIG_H

#include <stddef.h>
#include <stdint.h>

/* Address space is reserved, and classified, in chunks. */
#ifndef OH_CHUNK_LOG
#define OH_CHUNK_LOG 28
#endif
/* Memory is committed and given back in large pages, the size of the processor's huge pages. */
#ifndef OH_PAGE_LOG
#define OH_PAGE_LOG 21
#endif
/* The table covers addresses below 2^OH_ADDRESS_BITS. The heap is never placed above that, and what lies above is foreign: address spaces that are wider or
   narrower need nothing else, but static data should lie below. 2^47 is what Linux gives user programs on x86-64, 2^48 on arm64. */
#ifndef OH_ADDRESS_BITS
#ifdef __aarch64__
#define OH_ADDRESS_BITS 48
#else
#define OH_ADDRESS_BITS 47
#endif
#endif
/* The pools of OCaml 5's major heap. */
#ifndef OH_POOL_LOG
#define OH_POOL_LOG 15
#endif

#define OH_CHUNK ((size_t)1 << OH_CHUNK_LOG)
#define OH_PAGE ((size_t)1 << OH_PAGE_LOG)
#define OH_POOL ((size_t)1 << OH_POOL_LOG)
#define OH_PAGES_PER_CHUNK ((size_t)1 << (OH_CHUNK_LOG - OH_PAGE_LOG))
#define OH_POOLS_PER_PAGE ((size_t)1 << (OH_PAGE_LOG - OH_POOL_LOG))
#define OH_ENTRIES ((size_t)1 << (OH_ADDRESS_BITS - OH_CHUNK_LOG))

/* How the marker and a reservation agree on a chunk's kind: see table.h. 1: taint; 0: dependency ordering alone. */
#ifndef OH_TAINT
#define OH_TAINT 1
#endif

/* Checks of invariants after each operation. */
#ifndef OH_DEBUG
#define OH_DEBUG 0
#endif

/* Counters in the marking loop. */
#ifndef OH_COUNT
#define OH_COUNT 0
#endif

_Static_assert(OH_PAGES_PER_CHUNK >= 1 && OH_POOLS_PER_PAGE >= 1 && OH_POOLS_PER_PAGE <= 64, "sizes");
_Static_assert(OH_ADDRESS_BITS > OH_CHUNK_LOG && OH_ADDRESS_BITS <= 57, "width of the table");

#endif
