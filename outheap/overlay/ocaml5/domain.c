/* SPDX-License-Identifier: MIT */
/* Minor heaps: in chunks of their own. */
#define _GNU_SOURCE /* as the unit does, which comes too late */
#include "prelude.h"

#define caml_mem_map(bytes, reserve_only) oh_minor_heaps_reserve(bytes)
#define caml_mem_unmap(start, bytes) oh_minor_heaps_release(start, bytes)
#define caml_mem_commit(start, bytes) oh_minor_heap_commit(start, bytes)
#define caml_mem_decommit(start, bytes) oh_minor_heap_discard(start, bytes)

#include <domain.c>
