/* SPDX-License-Identifier: MIT */
#include "region.h"

uint8_t oh_region_notes[OH_TABLE_ENTRIES];
struct oh_region_watch oh_region_watch;
bool oh_region_has_cycles;
static struct oh_region_owner *owners; /* grows only */

void oh_region_add_owner(struct oh_region_owner *o)
{
  o->next = oh_load_acquire(&owners);
  while (!oh_cas_seq_cst(&owners, &o->next, o)) {}
}

void oh_region_cycle(void)
{
  for (struct oh_region_owner *o = oh_load_acquire(&owners); o != NULL; o = o->next) o->cycle();
  oh_track_cycle();
}

void oh_region_cycled(void)
{
  for (struct oh_region_owner *o = oh_load_acquire(&owners); o != NULL; o = o->next) o->cycled();
}
