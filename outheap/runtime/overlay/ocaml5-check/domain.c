/* SPDX-License-Identifier: MIT */
/* Domains. The texts of two functions are changed by domain.edits.

   Stock   a domain's minor heap begins where its part of the addresses does.
   Here    the part is a ring (trap.h). Where the minor heap is in it becomes the beginning of the part, as far as the
           runtime knows. */
#define _GNU_SOURCE /* as the unit does, which would be too late */
#include "prelude.h"
#include "clock.h"
#include "hooks.h"
#include "trap.h"
#include <caml/version.h>

static void *trap_commit(void *start, uintnat bytes);
static void trap_decommit(void *start, uintnat bytes);
static void trap_moved(caml_domain_state *d);
static void oh_trap_finish_cycle(void);

static void *trap_reserve(uintptr_t bytes)
{
  oh_trap_reserved();
  return oh_hooks_reserve_minor_heaps(bytes);
}

#define oh_hooks_reserve_minor_heaps(bytes) trap_reserve(bytes)
#define oh_hooks_commit_minor_heap(start, bytes) trap_commit(start, bytes)
#define oh_hooks_purge_minor_heap(start, bytes) trap_decommit(start, bytes)

#include "../ocaml5/domain.c"

#undef oh_hooks_commit_minor_heap
#undef oh_hooks_purge_minor_heap

#if OCAML_VERSION < 50500
#define minor_heap_reservation_start minor_heap_area_start
#define minor_heap_reservation_end minor_heap_area_end
#endif

static void *trap_commit(void *start, uintnat bytes)
{
  if (!oh_trap_on) return oh_hooks_commit_minor_heap(start, bytes);
  dom_internal *self = domain_self;
  uintptr_t at = oh_trap_commit(self->id, (uintptr_t)start, self->minor_heap_reservation_end, bytes);
  if (at == 0) return NULL;
  self->minor_heap_reservation_start = at;
  return (void *)at;
}

static void trap_decommit(void *start, uintnat bytes)
{
  if (!oh_trap_on) oh_hooks_purge_minor_heap(start, bytes);
  else oh_trap_decommit(domain_self->id);
}

static void trap_moved(caml_domain_state *d)
{
  all_domains[d->id].minor_heap_reservation_start = (uintnat)d->young_start;
  d->young_trigger = d->young_start + (d->young_end - d->young_start) / 2;
  caml_memprof_set_trigger(d);
  caml_reset_young_limit(d);
}

static void oh_trap_finish_cycle(void)
{
  if (!oh_trap_cycle_is_due()) return;
  uint64_t began = oh_clock_of_machine();
  caml_finish_major_cycle(1);
  oh_trap_spent(began);
}
