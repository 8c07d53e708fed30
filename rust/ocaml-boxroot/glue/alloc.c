/* SPDX-License-Identifier: MIT */
/* Blocks. */
#include "obx.h"
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/domain.h>
#include <caml/gc.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/signals.h>
#include <stdlib.h>
#include <string.h>

/* Words in the minor heap, in pieces of PIECE words (the last may be smaller): each is one block for the runtime until
   blocks are carved from it. Memprof may be tracking such a block, so no carved block reaches over the border of a
   piece. */
typedef struct {
  uintptr_t *at, *piece_end, *end;
  uintptr_t color;
  size_t surplus; /* about how many words are to be allocated elsewhere; then all pieces are ahead */
} obx_reserve_result;
enum { PIECE = Max_young_wosize + 1 };

#if OCAML5
/* When half of the minor heap is used, a slice of major collection is due. If it ends a cycle, it empties the minor
   heap, over and over where the heap is small. So it waits until the value is built. */
static void pass_half(void)
{
  Caml_state->young_trigger = Caml_state->young_start;
  caml_reset_young_limit(Caml_state);
}
static void ask_for_slice(void) { caml_request_major_slice(0); }
#else
static void pass_half(void) {}
static void ask_for_slice(void) {}
#endif

/* At most 15/16 of the minor heap: a collection in between is no loss, and what does not fit costs much more in the
   major heap. With what the ends of pieces waste, where blocks are small. */
void obx_reserve(size_t wanted, obx_reserve_result *out)
{
  size_t limit = Caml_state->minor_heap_wsz / 16 * 15, words = wanted < PIECE ? wanted : wanted + wanted / 64;
  uintptr_t *low, *high;
  if (words > limit) words = limit;
  if (words < 2) words = 2;
  if (words <= PIECE) {
    low = (uintptr_t *)Hp_val(caml_alloc_small(words - 1, Abstract_tag));
    high = low + words;
  } else {
    /* The minor heap grows downwards. A collection moves the place: then what was reserved before is lost, and the rest
       is taken from the emptied heap. */
    size_t pieces = (words + PIECE - 1) / PIECE, tries = 2 * pieces;
    bool large = words > Caml_state->minor_heap_wsz / 2;
    low = high = NULL;
    while (tries-- > 0 && (size_t)(high - low) < pieces * PIECE) {
      uintptr_t *piece = (uintptr_t *)Hp_val(caml_alloc_small(PIECE - 1, Abstract_tag));
      if (piece + PIECE != low) {
        high = piece + PIECE;
        if (large) pass_half();
      }
      low = piece;
    }
    if (large) ask_for_slice();
  }
  out->at = low;
  out->end = high;
  words = (size_t)(high - low) / 65 * 64;
  out->surplus = wanted > PIECE && wanted > words + PIECE ? wanted - words : 0;
  out->piece_end = out->surplus > 0 ? low : (size_t)(high - low) < PIECE ? high : low + PIECE;
  out->color = Color_hd(*(header_t *)low);
}

/* Where the minor heaps are, until the next collection. */
typedef struct { uintptr_t start, end; } obx_range;
obx_range obx_young(void)
{
#if OCAML5
  return (obx_range){(uintptr_t)caml_minor_heaps_start, (uintptr_t)caml_minor_heaps_end};
#else
  return (obx_range){(uintptr_t)Caml_state->young_start, (uintptr_t)Caml_state->young_end};
#endif
}

#if BOXROOT_DEBUG
/* The checked build can be told to refuse a block in the major heap: so many are allocated on this thread first. */
static _Thread_local long until_refused = -1;
void obx_refuse_after(long blocks) { until_refused = blocks; }
static bool refused(void) { return until_refused >= 0 && until_refused-- == 0; }
#else
static inline bool refused(void) { return false; }
#endif

/* A block in the major heap, or 0. Its fields hold nothing yet. Never runs the collector. */
value obx_alloc_major(size_t size, unsigned tag)
{
  if (size == 0 || size > Max_wosize || refused()) return 0;
#if OCAML5
  return caml_alloc_shr_noexc(size, tag);
#else
  return caml_alloc_shr_no_track_noexc(size, tag);
#endif
}

/* The same, scanned, with these fields. */
value obx_alloc_major_filled(size_t size, unsigned tag, value const *fields)
{
  value block = obx_alloc_major(size, tag);
  if (block == 0) return 0;
  for (size_t i = 0; i < size; i++)
    if (Is_block(fields[i]) && Is_young(fields[i])) caml_initialize(&Field(block, i), fields[i]);
    else Field(block, i) = fields[i];
  return block;
}

/* A string of `length` unspecified bytes, 0 when the heap refuses. May run the collector. */
value obx_alloc_string(size_t length)
{
  size_t size = length / sizeof(value) + 1;
  value s;
  if (size <= Max_young_wosize) s = caml_alloc_small(size, String_tag);
  else if ((s = obx_alloc_major(size, String_tag)) == 0) return 0;
  else s = caml_check_urgent_gc(s);
  Field(s, size - 1) = 0;
  ((unsigned char *)s)[size * sizeof(value) - 1] = (unsigned char)(size * sizeof(value) - 1 - length);
  return s;
}

value obx_alloc_float(double x)
{
  value v = caml_alloc_small(sizeof(double) / sizeof(value), Double_tag);
  memcpy((void *)v, &x, sizeof x);
  return v;
}

/* How much outside memory a block of the minor heap may be charged with; a larger one is allocated in the major heap,
   by a function that may raise. */
extern uintnat volatile caml_custom_minor_max_bsz;

/* A custom block of `size` bytes, at most 2000, to which `bytes` of outside memory belong. The data are not
   initialised. May run the collector, before. */
value obx_alloc_custom(struct custom_operations const *ops, size_t size, size_t bytes)
{
  if (bytes == 0) return caml_alloc_custom((void *)ops, size, 0, 1);
#if OCAML_VERSION >= 50300
  uintnat most = caml_custom_minor_max_bsz;
  value v = caml_alloc_custom_mem(ops, size, bytes < most ? bytes : most);
  if (bytes > most) caml_adjust_gc_speed(bytes - most, caml_custom_get_max_major());
  return v;
#else
  return caml_alloc_custom_mem((void *)ops, size, bytes);
#endif
}

/* False when memory is short. The operations are never freed. */
bool obx_register_operations(struct custom_operations const *ops)
{
  /* The runtime's function raises when this much cannot be had. */
  void *probe = malloc(256);
  free(probe);
  if (probe == NULL) return false;
  caml_register_custom_operations((void *)ops);
  return true;
}

value obx_atom(unsigned tag) { return Atom(tag); }

/* As src/value/mod.rs reads headers. */
_Static_assert(Wosize_hd(UINTPTR_MAX) == UINTPTR_MAX >> 10 && Tag_hd(UINTPTR_MAX) == 255,
               "an OCaml without reserved bits in headers");
