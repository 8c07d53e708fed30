/* SPDX-License-Identifier: MIT */
/* Single steps of the code of regions, for ../test_region_model.py, which visits every state: a line has a step and the
   state of one region before it, the answer the state after it, what was darkened, and a result. */
#include "outheap_marker.h"
#include "pointer.h"
#include "start.h"
#include "region.c" /* a region's record is set to any state */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { NOTHING, OLD_A, OLD_Y, YOUNG_Y, ITSELF, WORDS }; /* what the region's word holds */
enum { SLOT = 3, BYTES = 4096 };

static uintptr_t base, word_of[WORDS];
static struct oh_track *track;
static unsigned darkened, asked, met, keep;

static void darken(uintptr_t v)
{
  for (unsigned w = OLD_A; w < WORDS; w++)
    if (word_of[w] == v) darkened |= 1u << w;
}
static void forget(uintptr_t begin, uintptr_t end) { (void)begin, (void)end; }
static bool more_to_mark(void) { return asked = 1, true; }

/* As the library's: between two cycles it looks at the reach bits, and says whether the region has a handle. */
static void look(void)
{
  met = outheap_marker_met((void *)base, BYTES);
  outheap_marker_clear((void *)base, BYTES);
  outheap_marker_keep((void *)base, keep);
}
static void nothing(void) {}

static bool set_up(void)
{
  static struct outheap_marker_cycle owner = { &look, &nothing, NULL };
  char *p = mmap(NULL, 4 * OH_CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  base = OH_ROUND_UP((uintptr_t)p, OH_CHUNK);
  uintptr_t heap = base + OH_CHUNK, young = heap + OH_CHUNK;
  uintptr_t words[WORDS] = { 1, heap + 8, heap + 64, young + 8, base + 64 };
  memcpy(word_of, words, sizeof words);
  oh_region_has_cycles = true;
  oh_track_runtime = (struct oh_track_runtime){ &darken, &forget, &more_to_mark };
  return p != MAP_FAILED && mprotect((void *)base, BYTES, PROT_READ | PROT_WRITE) == 0
         && outheap_marker_claim((void *)base, BYTES) && oh_table_claim(heap, OH_KIND_MAJOR)
         && oh_table_claim(young, OH_KIND_YOUNG) && outheap_marker_on_cycle(&owner)
         && outheap_marker_track((void *)base, BYTES) && (track = at(base)) != NULL;
}

struct state { unsigned tracked, bits, reached, kept, fresh, waits, listed, slot, word; };

static void load_state(struct state const *s)
{
  set_chunks(track, s->tracked ? track : NULL);
  tracks = s->tracked ? track : NULL;
  oh_region_reach_bits[base >> OH_CHUNK_LOG] = (uint8_t)s->bits;
  track->reached = s->reached, track->kept = s->kept, track->fresh = s->fresh, track->waits = s->waits;
  track->next_slot = 0;
  track->pending = NULL;
  oh_track_waiting = s->listed ? track : NULL;
  track->slots[0] = track->groups[0] = 0;
  if (s->slot) set(track->slots, SLOT), set(track->groups, 0);
  *slot_at(track, SLOT) = word_of[s->word];
}

static struct state save_state(struct state s)
{
  s.bits = oh_region_reach_bits[base >> OH_CHUNK_LOG];
  s.reached = track->reached, s.kept = track->kept, s.fresh = track->fresh, s.waits = track->waits;
  s.listed = oh_track_is_waiting();
  s.slot = is_set(track->slots, SLOT) && is_set(track->groups, 0);
  for (s.word = WORDS - 1; s.word != 0 && word_of[s.word] != *slot_at(track, SLOT); s.word--) {}
  return s;
}

static unsigned step(char name, unsigned argument)
{
  uintptr_t *slot = slot_at(track, SLOT);
  struct oh_track *hands = NULL;
  switch (name) {
    case 'f': return oh_pointer_is_markable_by(base + 8, argument ? OH_REGION_BY_ROOT : OH_REGION_BY_BLOCK);
    case 'g': outheap_marker_meet((void *)(base + 8)); return 0;
    case 's': *slot = word_of[argument]; oh_track_wrote((uintptr_t)slot, *slot); return 0;
    case 'p': *slot = word_of[argument]; return 0; /* a minor collection */
    case 'k': outheap_marker_keep((void *)base, argument); return 0;
    case 'c': keep = argument; oh_region_cycle(); return met;
    case 'm': oh_region_mark(); return 0;
    case 'r': oh_track_roots(); return 0;
    case 'w': (void)oh_track_mark(&hands); oh_track_leave(hands); return 0;
    case 'u': return oh_track_is_unreached(base + 8);
  }
  return 0;
}

int main(void)
{
  char name;
  unsigned argument;
  struct state s;
  setenv("OUTHEAP", "thp=off", 1);
  oh_start();
  if (!set_up()) return EXIT_FAILURE;
  while (scanf(" %c %u %u %u %u %u %u %u %u %u %u", &name, &argument, &s.tracked, &s.bits, &s.reached, &s.kept,
               &s.fresh, &s.waits, &s.listed, &s.slot, &s.word) == 11) {
    load_state(&s);
    darkened = asked = 0;
    unsigned result = step(name, argument);
    s = save_state(s);
    printf("%u %u %u %u %u %u %u %u %u %u %u %u\n", s.tracked, s.bits, s.reached, s.kept, s.fresh, s.waits, s.listed,
           s.slot, s.word, darkened, asked, result);
    fflush(stdout);
  }
  return EXIT_SUCCESS;
}
