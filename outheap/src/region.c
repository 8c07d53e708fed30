/* SPDX-License-Identifier: MIT */
#include "region.h"

uint8_t oh_region_notes[OH_TABLE_ENTRIES];
struct oh_region_watch oh_region_watch;
bool oh_region_has_cycles;
static struct oh_region_owner *owners; /* grows only */

void oh_region_meet_cell(uintptr_t address, uint8_t note)
{
  uintptr_t chunk = address & ~((uintptr_t)OH_CHUNK - 1), word = (address - chunk) / sizeof(uint64_t);
  uint64_t *map = (uint64_t *)(chunk + ((note & OH_REGION_SECOND) != 0 ? OH_REGION_MAP : 0));
  uint64_t *at = &map[word / 64], bit = (uint64_t)1 << word % 64;
  if ((oh_load_relaxed(at) & bit) == 0) (void)oh_fetch_or_relaxed(at, bit);
}

void oh_region_add_owner(struct oh_region_owner *o)
{
  o->next = oh_load_acquire(&owners);
  while (!oh_cas_seq_cst(&owners, &o->next, o)) {}
}

void oh_region_cycle(void)
{
  for (struct oh_region_owner *o = oh_load_acquire(&owners); o != NULL; o = o->next) o->cycle();
  oh_track_turn();
}

void oh_region_mark(void) { oh_track_cycle(); }

void oh_region_cycled(void)
{
  for (struct oh_region_owner *o = oh_load_acquire(&owners); o != NULL; o = o->next) o->cycled();
}
