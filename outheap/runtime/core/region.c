/* SPDX-License-Identifier: MIT */
#include "region.h"
#include "os.h"

/* --- reach bits --------------------------------------------------------------------------------------------------- */

uint8_t oh_region_reach_bits[OH_TABLE_ENTRIES];
struct oh_region_watch oh_region_watch;
bool oh_region_has_cycles;
static struct oh_region_owner *owners; /* grows only */

void oh_region_set_cell_bit(uintptr_t address, uint8_t bits)
{
  uintptr_t chunk = address & ~((uintptr_t)OH_CHUNK - 1), word = (address - chunk) / sizeof(uint64_t);
  uint64_t *map = (uint64_t *)(chunk + ((bits & OH_REGION_SECOND) != 0 ? OH_REGION_MAP : 0));
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

/* --- tracked memory ----------------------------------------------------------------------------------------------- */

#define WORD sizeof(uintptr_t)
#define BITS 64
#define DARKEN_AHEAD 16   /* slots */
#define HASTEN_PIECES 4  /* pieces, for a caller who lets others go on in between */

struct oh_track_runtime oh_track_runtime;
uintptr_t oh_track_limit;

static struct oh_track *tracks;
static struct oh_track **by_chunk; /* of OH_TABLE_ENTRIES, when there was one; NULL before */

static struct oh_track *at(uintptr_t address)
{
  struct oh_track **table = oh_load_acquire(&by_chunk);
  if (table == NULL || address >> OH_CHUNK_LOG >= OH_TABLE_ENTRIES) return NULL;
  struct oh_track *t = oh_load_acquire(&table[address >> OH_CHUNK_LOG]);
  return t != NULL && address - t->base < t->bytes ? t : NULL;
}

/* --- bits --------------------------------------------------------------------------------------------------------- */

static inline bool is_set(uint64_t const *bits, size_t i) { return oh_load_relaxed(&bits[i / BITS]) >> i % BITS & 1; }

static inline void set(uint64_t *bits, size_t i) { oh_or_acq_rel(&bits[i / BITS], UINT64_C(1) << i % BITS); }
static inline void clear(uint64_t *bits, size_t i) { oh_and_acq_rel(&bits[i / BITS], ~(UINT64_C(1) << i % BITS)); }

static size_t words_of(struct oh_track const *t) { return (t->bytes / WORD + BITS - 1) / BITS; } /* of `slots` */

void oh_track_wrote_slow(uintptr_t slot, uintptr_t v)
{
  if (v & 1) return;
  struct oh_track *t = at(slot);
  if (t == NULL || v - t->base < t->bytes) return;
  size_t i = (slot - t->base) / WORD;
  set(t->slots, i); /* even if it is set: see region.h */
  if (!is_set(t->groups, i / BITS)) set(t->groups, i / BITS);
}

/* The word may be written at the same time; ThreadSanitizer would see a race with the program's store. */
static __attribute__((noinline, no_sanitize("thread"))) uintptr_t load(uintptr_t const *slot)
{
  return *(uintptr_t const volatile *)slot;
}

static inline uintptr_t *slot_at(struct oh_track const *t, size_t i) { return (uintptr_t *)t->base + i; }

/* A pointer to outside, and not to what the marker will never care about? */
static bool is_pointer_out(struct oh_track const *t, uintptr_t v)
{
  if ((v & 1) || v - t->base < t->bytes) return false;
  enum oh_kind k = oh_table_kind(v);
  return !oh_kind_is_foreign(k) && k != OH_KIND_VALUES && k != OH_KIND_REVOKED;
}

#define EACH_SLOT(t, i)                                                                            \
  for (size_t g = 0, groups_ = (words_of(t) + BITS - 1) / BITS; g < groups_; g++)                  \
    for (uint64_t gs = oh_load_relaxed(&(t)->groups[g]); gs != 0; gs &= gs - 1)                    \
      for (size_t w = g * BITS + (unsigned)__builtin_ctzll(gs), once_ = 1; once_ != 0; once_ = 0)  \
        for (uint64_t bits_ = oh_load_relaxed(&(t)->slots[w]); bits_ != 0; bits_ &= bits_ - 1)     \
          for (size_t i = w * BITS + (unsigned)__builtin_ctzll(bits_), one_ = 1; one_ != 0; one_ = 0)

/* --- marking ------------------------------------------------------------------------------------------------------ */

struct oh_track *oh_track_waiting; /* a list by `pending`: it is added to one by one, and taken as a whole */

/* What this slot holds for the marker; 0: nothing. Its bit is dropped if that is no pointer. */
static inline uintptr_t read_slot(struct oh_track *t, size_t i)
{
  uintptr_t v = load(slot_at(t, i));
  if (!is_pointer_out(t, v)) {
    clear(t->slots, i);
    if (is_pointer_out(t, load(slot_at(t, i)))) set(t->slots, i);
  }
  return (v & 1) == 0 && v - t->base >= t->bytes ? v : 0;
}

#define FROM(i) (~UINT64_C(0) << (i) % BITS)
enum { PIECE_GROUPS_MOST = 16 }; /* of 4,096 slots each: more is not passed over in one piece */

/* Values are darkened some slots later: their headers, which are anywhere, have come from memory by then. */
struct ahead { uintptr_t values[DARKEN_AHEAD]; size_t n; };
static inline void darken_later(struct ahead *a, uintptr_t v)
{
  uintptr_t *place = &a->values[a->n++ % DARKEN_AHEAD], before = *place;
  __builtin_prefetch((void *)(v - WORD), 1);
  *place = v;
  if (before != 0) oh_track_runtime.darken(before);
}

/* The next OH_TRACK_PIECE slots, from `next_slot` on. Result: the work, as the marker counts it. */
static size_t mark_piece(struct oh_track *t)
{
  struct ahead ahead = { { 0 }, 0 };
  size_t words = words_of(t), w = t->next_slot / BITS, end = OH_ROUND_DOWN(w, BITS) + PIECE_GROUPS_MOST * BITS;
  size_t work = 0, seen = 0, stop = 0;
  uint64_t first = FROM(t->next_slot);
  if (end > words) end = words;
  while (w < end) {
    uint64_t group = oh_load_relaxed(&t->groups[w / BITS]) & FROM(w);
    size_t next = OH_ROUND_DOWN(w, BITS) + (group != 0 ? (size_t)__builtin_ctzll(group) : BITS);
    work++;
    if (next != w) first = ~UINT64_C(0);
    w = next;
    if (group == 0) continue;
    for (uint64_t bits = oh_load_relaxed(&t->slots[w]) & first; bits != 0 && seen < OH_TRACK_PIECE; bits &= bits - 1) {
      size_t i = w * BITS + (unsigned)__builtin_ctzll(bits);
      uintptr_t v = read_slot(t, i);
      if (v != 0) darken_later(&ahead, v);
      seen++;
      stop = i + 1;
    }
    if (seen == OH_TRACK_PIECE) break;
    w++;
    first = ~UINT64_C(0);
  }
  t->next_slot = seen == OH_TRACK_PIECE ? stop : w * BITS;
  oh_store_relaxed(&t->waits, t->next_slot / BITS < words);
  for (size_t i = 0; i < DARKEN_AHEAD; i++)
    if (ahead.values[i] != 0) oh_track_runtime.darken(ahead.values[i]);
  return work + seen + ahead.n; /* slots, and headers */
}

static void add_to_waiting(struct oh_track *t)
{
  t->pending = oh_load_relaxed(&oh_track_waiting);
  while (!oh_cas_seq_cst(&oh_track_waiting, &t->pending, t)) {}
}

/* All those that wait: nobody else has them. */
static struct oh_track *take_waiting(void) { return oh_exchange_acq_rel(&oh_track_waiting, NULL); }

/* Puts back what take_waiting gave, or what is left of it; a list that came up meanwhile is short, and goes in
   front. */
static void return_waiting(struct oh_track *list)
{
  struct oh_track *none = NULL;
  while (list != NULL && !oh_cas_seq_cst(&oh_track_waiting, &none, list)) {
    struct oh_track *others = take_waiting(), *last = others;
    none = NULL;
    if (others == NULL) continue;
    while (last->pending != NULL) last = last->pending;
    last->pending = list;
    list = others;
  }
}

size_t oh_track_mark(struct oh_track **hands)
{
  if (*hands == NULL) *hands = take_waiting();
  struct oh_track *t = *hands;
  if (t == NULL) return 0;
  size_t work = mark_piece(t);
  if (!oh_load_relaxed(&t->waits)) *hands = t->pending;
  return work;
}

void oh_track_leave(struct oh_track *hands) { return_waiting(hands); }

static void darken_pieces(struct oh_track *t, size_t pieces)
{
  for (; pieces != 0 && oh_load_relaxed(&t->waits); pieces--) (void)mark_piece(t);
}

/* One region may lead to the next: those that are reached meanwhile wait in a list. */
static void reach(struct oh_track *t)
{
  static _Thread_local struct oh_track *pending;
  static _Thread_local bool busy;
  if (oh_exchange_acq_rel(&t->reached, true)) return;
  t->next_slot = 0;
  oh_store_relaxed(&t->waits, true);
  if (oh_track_runtime.more_to_mark != NULL && oh_track_runtime.more_to_mark()) {
    add_to_waiting(t);
    return;
  }
  t->pending = pending;
  pending = t;
  if (busy) return;
  busy = true;
  while ((t = pending) != NULL) {
    pending = t->pending;
    darken_pieces(t, SIZE_MAX);
  }
  busy = false;
}

/* Out of the list. False: somebody else has it, or it does not wait. */
static bool take_from_waiting(struct oh_track *t)
{
  struct oh_track *list = take_waiting(), **at = &list;
  while (*at != NULL && *at != t) at = &(*at)->pending;
  bool found = *at != NULL;
  if (found) *at = t->pending;
  return_waiting(list);
  return found;
}

/* This domain takes part before it has the list in its hands: who finds none waiting may end its marking. */
bool oh_track_hasten(uintptr_t base)
{
  struct oh_track *t = at(base);
  if (t == NULL || !oh_load_relaxed(&t->waits)) return false;
  if (!oh_track_runtime.more_to_mark()) return false;
  if (take_from_waiting(t)) {
    darken_pieces(t, HASTEN_PIECES);
    if (oh_load_relaxed(&t->waits)) add_to_waiting(t);
  }
  return oh_load_relaxed(&t->waits);
}

void oh_track_reach_slow(uintptr_t address)
{
  struct oh_track *t = at(address);
  if (t != NULL && !oh_load_relaxed(&t->reached)) reach(t);
}

bool oh_track_is_unreached_slow(uintptr_t address)
{
  struct oh_track *t = at(address);
  return t != NULL && !oh_load_relaxed(&t->reached);
}

void oh_track_turn(void)
{
  for (struct oh_track *t = oh_load_acquire(&tracks); t != NULL; t = t->next) oh_store_relaxed(&t->fresh, false);
}

void oh_track_cycle(void)
{
  OH_ASSERT(!oh_track_is_waiting());
  for (struct oh_track *t = oh_load_acquire(&tracks); t != NULL; t = t->next) oh_store_relaxed(&t->reached, false);
}

void oh_track_roots(void)
{
  for (struct oh_track *t = oh_load_acquire(&tracks); t != NULL; t = t->next)
    if ((oh_load_relaxed(&t->kept) || oh_load_relaxed(&t->fresh)) && !oh_load_relaxed(&t->reached)) reach(t);
}

void oh_track_each(void (*f)(void *data, uintptr_t v, uintptr_t *slot), void *data)
{
  for (struct oh_track *t = oh_load_acquire(&tracks); t != NULL; t = t->next)
    EACH_SLOT(t, i) {
      uintptr_t v = load(slot_at(t, i));
      if ((v & 1) == 0 && oh_table_kind(v) == OH_KIND_MAJOR) f(data, v, slot_at(t, i));
    }
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static bool table_exists(void)
{
  if (oh_load_acquire(&by_chunk) != NULL) return true;
  size_t bytes = OH_TABLE_ENTRIES * sizeof *by_chunk;
  struct oh_track **new = (void *)oh_os_map(bytes), **none = NULL;
  if (new == NULL) return false;
  if (!oh_cas_seq_cst(&by_chunk, &none, new)) oh_os_release((uintptr_t)new, bytes);
  return true;
}

static void set_chunks(struct oh_track *t, struct oh_track *to)
{
  for (uintptr_t c = t->base; c < t->base + t->bytes; c += OH_CHUNK) oh_store_release(&by_chunk[c >> OH_CHUNK_LOG], to);
}

bool oh_track_add(uintptr_t base, size_t bytes)
{
  struct oh_track r = { .base = base, .bytes = bytes, .reached = true, .fresh = true };
  size_t slots = words_of(&r), groups = (slots + BITS - 1) / BITS;
  r.size = sizeof r + (slots + groups) * sizeof(uint64_t);
  if (!table_exists()) return false;
  struct oh_track *t = (void *)oh_os_map(r.size);
  if (t == NULL) return false;
  *t = r;
  t->groups = (uint64_t *)(t + 1);
  t->slots = t->groups + groups;
  set_chunks(t, t);
  t->next = oh_load_acquire(&tracks);
  while (!oh_cas_seq_cst(&tracks, &t->next, t)) {}
  uintptr_t limit = oh_load_relaxed(&oh_track_limit);
  while (limit < base + bytes && !oh_cas_seq_cst(&oh_track_limit, &limit, base + bytes)) {}
  return true;
}

void oh_track_remove(uintptr_t base)
{
  struct oh_track *t = at(base), **from = &tracks;
  if (t == NULL || t->base != base) return;
  if (oh_load_relaxed(&t->waits) && take_from_waiting(t)) darken_pieces(t, SIZE_MAX);
  set_chunks(t, NULL);
  while (*from != t) from = &(*from)->next;
  oh_store_release(from, t->next);
  if (tracks == NULL) oh_store_relaxed(&oh_track_limit, (uintptr_t)0);
  oh_os_release((uintptr_t)t, t->size);
}

void oh_track_keep(uintptr_t base, bool kept)
{
  struct oh_track *t = at(base);
  if (t != NULL) oh_store_relaxed(&t->kept, kept);
}

size_t oh_track_count(uintptr_t base)
{
  struct oh_track *t = at(base);
  size_t n = 0;
  if (t != NULL)
    EACH_SLOT(t, i) n += is_set(t->slots, i);
  return n;
}
