/* SPDX-License-Identifier: MIT */
/* Small and large blocks of the major heap, compaction, verification. Pools come from large pages instead of one mmap each, large blocks from
   block.h instead of malloc. Before compaction each list of pools is put in order of address, so that those which OCaml empties, the last ones, lie together
   and whole large pages become free; afterwards all free memory goes back to the system. */
#include "prelude.h"
#include <caml/addrmap.h>
#include <caml/roots.h>
#include "block.h"
#include "config.h"
#include "slab.h"

#define caml_mem_map(bytes, reserve_only) ((void)(bytes), oh_pool_take())
#define caml_mem_unmap(pool, bytes) oh_pool_give(pool)
#define malloc oh_block_take
#define free oh_block_give

/* Compaction rewrites, and verification follows, pointers to the major heap only. */
#undef Is_block
#define Is_block(v) (((v) & 1) == 0 && oh_marks((uintptr_t)(v)))

#define caml_compact_heap oh_stock_compact_heap
#include <shared_heap.c>
#undef caml_compact_heap
#undef caml_mem_map
#undef caml_mem_unmap
#undef malloc
#undef free

_Static_assert(Bsize_wsize(POOL_WSIZE) == OH_POOL, "pools of this version have another size");

#include "order.h"

void caml_compact_heap(caml_domain_state *domain, int participating, caml_domain_state **participants)
{
  oh_order_pools(domain->shared_heap);
  oh_stock_compact_heap(domain, participating, participants);
  if (participants[0] == domain) {
    oh_pools_trim(1);
    oh_blocks_trim();
  }
}
