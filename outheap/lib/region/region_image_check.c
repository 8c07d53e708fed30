/* SPDX-License-Identifier: MIT */
#include "region_image_check.h"
#include <caml/bigarray.h>
#include <caml/custom.h>
#include <stdlib.h>

char const outheap_region_image_check_no_memory[] = "no memory";

typedef struct outheap_region_image_check check;
#define WORD OUTHEAP_REGION_WORD
#if OCAML_VERSION >= 50200
#define LAST_KIND CAML_BA_FLOAT16
#else
#define LAST_KIND CAML_BA_CHAR
#endif

static bool is_address(check const *c, size_t offset)
{
  size_t i = (offset - c->start) / WORD;
  return c->bits[i / 64] >> i % 64 & 1;
}

static uintptr_t word_at(check const *c, size_t offset) { return *(uintptr_t const *)(c->at + offset); }

/* Tags of blocks that an image can have. */
static bool is_allowed(tag_t t)
{
  return t != Closure_tag && t != Infix_tag && t != Object_tag && t != Lazy_tag && t != Forcing_tag && t != Cont_tag;
}

static bool leads_to_block(check const *c, uint64_t const *starts, uintptr_t a)
{
  if (a % WORD != 0) return false;
  uintptr_t d = a - c->base;
  if (d < c->used) return d > c->start && (starts[d / WORD / 64] >> d / WORD % 64 & 1) != 0;
  for (size_t i = 0; i < c->need_count; i++) {
    d = a - c->need_base[3 * i];
    if (d < c->need_base[3 * i + 1] && d > c->start)
      return outheap_region_config_is_black(((header_t *)(c->need_base[3 * i + 2] + d))[-1]);
  }
  return false;
}

static char const *check_custom(check const *c, size_t offset, mlsize_t words, size_t *addresses)
{
  static char const wrong[] = "a custom block";
  uintptr_t o = words == 0 ? 0 : word_at(c, offset) - c->base - c->table;
  if (words == 0 || !is_address(c, offset) || o % sizeof(struct custom_operations) != 0 ||
      o / sizeof(struct custom_operations) >= c->customs)
    return wrong;
  ++*addresses;
  char const *name = c->names + o / sizeof(struct custom_operations) * c->name;
  if (strncmp(name, "_bigarr02", c->name) != 0) return words < 2 ? wrong : NULL;
  struct caml_ba_array const *b = (void const *)(c->at + offset + WORD);
  mlsize_t fixed = 1 + offsetof(struct caml_ba_array, dim) / WORD;
  if (words < fixed || b->num_dims < 0 || b->num_dims > CAML_BA_MAX_NUM_DIMS || words < fixed + (mlsize_t)b->num_dims)
    return wrong;
  int kind = (int)(b->flags & CAML_BA_KIND_MASK);
  if (kind > LAST_KIND || (b->flags & CAML_BA_MANAGED_MASK) != CAML_BA_MANAGED || !is_address(c, offset + WORD) ||
      (uintptr_t)b->proxy - c->base != c->proxy ||
      !is_address(c, offset + WORD + offsetof(struct caml_ba_array, proxy)))
    return wrong;
  *addresses += 2;
  uintptr_t data = (uintptr_t)b->data - c->base, room = c->used - data, bytes = (uintptr_t)caml_ba_element_size[kind];
  if (data >= c->used || data < c->start) return wrong;
  for (intnat i = 0; i < b->num_dims; i++)
    if (b->dim[i] < 0 || __builtin_mul_overflow(bytes, (uintptr_t)b->dim[i], &bytes)) return wrong;
  return bytes > room ? wrong : NULL;
}

static char const *check_fields(check const *c, uint64_t const *starts, size_t offset, mlsize_t words,
                                size_t *addresses)
{
  for (size_t at = offset; at < offset + words * WORD; at += WORD) {
    uintptr_t w = word_at(c, at);
    if ((w & 1) == 0 && (!is_address(c, at) || !leads_to_block(c, starts, w))) return "an address";
    if ((w & 1) != 0 && is_address(c, at)) return "the table of addresses";
    *addresses += (w & 1) == 0;
  }
  return NULL;
}

static char const *check_block(check const *c, uint64_t const *starts, size_t at, size_t *addresses)
{
  header_t h = *(header_t const *)(c->at + at);
  mlsize_t words = Wosize_hd(h);
  size_t offset = at + WORD;
  if (Tag_hd(h) < No_scan_tag) return check_fields(c, starts, offset, words, addresses);
  if (Tag_hd(h) == Custom_tag) return check_custom(c, offset, words, addresses);
  if (Tag_hd(h) == String_tag && (words == 0 || *(unsigned char const *)(c->at + offset + words * WORD - 1) >= WORD))
    return "the end of a string";
  if (Tag_hd(h) == Double_tag && words != 1) return "a float";
  return NULL;
}

char const *outheap_region_image_check(check const *c)
{
  size_t groups = c->used / WORD / 64 + 1, addresses = 0, marked = 0, last = 1;
  uint64_t *starts = calloc(groups, sizeof *starts);
  char const *wrong = starts == NULL ? outheap_region_image_check_no_memory : NULL;
  for (size_t at = c->start; wrong == NULL && at < c->used;) {
    header_t h = *(header_t const *)(c->at + at);
    size_t v = at + WORD;
    if (!outheap_region_config_is_black(h) || !is_allowed(Tag_hd(h)) || Wosize_hd(h) > (c->used - v) / WORD ||
        is_address(c, at))
      wrong = "a header";
    else if (v < c->used) starts[v / WORD / 64] |= UINT64_C(1) << v / WORD % 64;
    last = Wosize_hd(h);
    at = v + last * WORD;
  }
  if (wrong == NULL && last != 0) wrong = "the end of the blocks";
  for (size_t at = c->start; wrong == NULL && at < c->used;) {
    wrong = check_block(c, starts, at, &addresses);
    at += WORD + WORD * Wosize_hd(*(header_t const *)(c->at + at));
  }
  for (size_t i = 0; i < ((c->used - c->start) / WORD + 63) / 64; i++)
    marked += (size_t)__builtin_popcountll(c->bits[i]);
  if (wrong == NULL && marked != addresses) wrong = "the table of addresses";
  if (wrong == NULL && (c->root & 1) == 0 && !leads_to_block(c, starts, c->root)) wrong = "the root";
  free(starts);
  return wrong;
}
