/* SPDX-License-Identifier: MIT */
/* Domains: minor heaps.

   Stock   reserves one range of addresses for the minor heaps of as many domains as there may be.
   Here    the range is in chunks of its own, so that the table knows it, and the part of a domain is reserved when the
           domain gets its minor heap. */
#define _GNU_SOURCE /* as the unit does, which would be too late */
#include "prelude.h"
#include "hooks.h"

#define caml_mem_map(bytes, ...) oh_hooks_reserve_minor_heaps(bytes)
#define caml_mem_unmap(start, bytes) oh_hooks_release_minor_heaps(start, bytes)
#define caml_mem_commit(start, bytes) oh_hooks_commit_minor_heap(start, bytes)
#define caml_mem_decommit(start, bytes) oh_hooks_purge_minor_heap(start, bytes)

#include <domain.c>
