/* SPDX-License-Identifier: MIT */
#include "region_share.h"
#include "region_custom.h"
#include <caml/bigarray.h>
#include <sys/mman.h>

typedef struct outheap_region_copy copy;
#define WORD OUTHEAP_REGION_WORD

/* The colour of a block's header in the copy:
     UNSEEN   all at first
     OPEN     its fields are being looked at: it is on the stack
     KEPT     done, and kept
     MERGED   done, and equal to another one: the header says where that is (an address in words, then ten bits of
              zero), and the first field is the block's own header */
#define UNSEEN OUTHEAP_REGION_BLACK
#define OPEN ((header_t)2 << 8)
#define KEPT ((header_t)1 << 8)
#define MERGED ((header_t)0)
static inline header_t colour(header_t h) { return h & OUTHEAP_REGION_BLACK; }
/* (the header of a function within a closure has any colour, but a tag) */
static inline bool is_merged(header_t h) { return (h & 0x3ff) == MERGED; }
static inline header_t with(header_t h, header_t c) { return (h & ~OUTHEAP_REGION_BLACK) | c; }

struct state {
  copy *c;
  struct outheap_region_vector stack; /* pairs: a block, its next field */
  struct set { value *slot; size_t size, count; } set; /* kept blocks, and those of other images; open addressing */
};

static inline bool is_own(copy const *c, value v) { return (uintptr_t)v - (uintptr_t)c->base < c->used; }
static inline header_t *header_of(value v) { return (header_t *)v - 1; }

/* The block that a pointer into the copy leads to, by itself or to a function inside. */
static inline value whole(value v)
{
  header_t h = *header_of(v);
  return Tag_hd(h) == Infix_tag ? v - (value)Infix_offset_hd(h) : v;
}

static inline value merged_into(header_t h) { return (value)((h >> 10) * WORD); }
static inline header_t merged_header(value into) { return (header_t)into / WORD << 10; }

/* --- the set of blocks -------------------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t h, uint64_t w)
{
  h = (h ^ w) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

static uint64_t hash(value v, header_t h)
{
  uint64_t x = mix(0, h & ~OUTHEAP_REGION_BLACK);
  for (mlsize_t i = 0; i < Wosize_hd(h); i++) x = mix(x, (uint64_t)Field(v, i));
  return x ^ x >> 32;
}

static bool grow(struct set *s)
{
  struct set new = { NULL, s->size == 0 ? (size_t)1 << 14 : 4 * s->size, s->count };
  new.slot = mmap(NULL, new.size * sizeof(value), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  if (new.slot == MAP_FAILED) return false;
  for (size_t i = 0; i < s->size; i++) {
    if (s->slot[i] == 0) continue;
    size_t j = hash(s->slot[i], *header_of(s->slot[i])) & (new.size - 1);
    while (new.slot[j] != 0) j = (j + 1) & (new.size - 1);
    new.slot[j] = s->slot[i];
  }
  if (s->size != 0) munmap(s->slot, s->size * sizeof(value));
  *s = new;
  return true;
}

static bool same(value a, value b, header_t h)
{
  return with(*header_of(a), 0) == with(h, 0) && memcmp((void *)a, (void *)b, Wosize_hd(h) * WORD) == 0;
}

/* The equal block that is there already, or `v`, which is there now; 0: no memory. */
static value enter(struct set *s, value v, header_t h)
{
  if (4 * (s->count + 1) > 3 * s->size && !grow(s)) return 0;
  size_t j = hash(v, h) & (s->size - 1);
  for (; s->slot[j] != 0; j = (j + 1) & (s->size - 1))
    if (same(s->slot[j], v, h)) return s->slot[j];
  s->slot[j] = v;
  s->count++;
  return v;
}

/* --- bottom up ---------------------------------------------------------------------------------------------------- */

static bool is_unique(value v, header_t h)
{
  tag_t t = Tag_hd(h);
  return Wosize_hd(h) == 0 || t == Closure_tag || t == Object_tag || t == Abstract_tag ||
         (t == Custom_tag && outheap_region_custom_kind(Custom_ops_val(v)) == OUTHEAP_REGION_CUSTOM_BIGARRAY);
}

/* Where a field should lead now. */
static inline value settle(copy const *c, value f)
{
  if (!Is_block(f) || !is_own(c, f)) return f;
  header_t h = *header_of(f);
  return is_merged(h) ? merged_into(h) : f;
}

/* All of its fields are done. */
static bool close_block(struct state *s, value v)
{
  copy *c = s->c;
  header_t *at = header_of(v), h = *at;
  if (Tag_hd(h) < No_scan_tag)
    for (mlsize_t i = Tag_hd(h) == Closure_tag ? Start_env_closinfo(Closinfo_val(v)) : 0; i < Wosize_hd(h); i++)
      Field(v, i) = settle(c, Field(v, i));
  *at = with(h, KEPT);
  if (is_unique(v, h)) return true;
  value equal = enter(&s->set, v, h);
  if (equal == 0) return false;
  if (equal != v) {
    *at = merged_header(equal);
    Field(v, 0) = (value)with(h, UNSEEN);
  }
  return true;
}

static bool open_block(struct state *s, value v)
{
  header_t *at = header_of(v);
  *at = with(*at, OPEN);
  return outheap_region_vector_push(&s->stack, (uintptr_t)v) && outheap_region_vector_push(&s->stack, 0);
}

static bool merge(struct state *s, value root)
{
  if (!open_block(s, root)) return false;
  while (s->stack.count != 0) {
    uintptr_t *top = s->stack.word + s->stack.count - 2;
    value v = (value)top[0];
    header_t h = *header_of(v);
    mlsize_t i = top[1], words = Tag_hd(h) < No_scan_tag ? Wosize_hd(h) : 0;
    if (i == 0 && Tag_hd(h) == Closure_tag) i = Start_env_closinfo(Closinfo_val(v));
    value next = 0;
    for (; i < words && next == 0; i++) {
      value f = Field(v, i);
      if (Is_block(f) && is_own(s->c, f) && !is_merged(*header_of(f))) {
        f = whole(f);
        if (colour(*header_of(f)) == UNSEEN) next = f;
      }
    }
    top[1] = i;
    if (next != 0 ? !open_block(s, next) : !(s->stack.count -= 2, close_block(s, v))) return false;
  }
  return true;
}

/* --- what is left moves together -------------------------------------------------------------------------------------
   The place of a block that is kept is the number of kept words before it: a bit for each word of the copy, and a count
   for each 64 of them. */

struct ranks { uint64_t *bits; size_t *before, words; };

static size_t rank_of(struct ranks const *r, size_t word)
{
  uint64_t below = r->bits[word / 64] & ((UINT64_C(1) << (word % 64)) - 1);
  return r->before[word / 64] + (size_t)__builtin_popcountll(below);
}

static inline value placed(copy const *c, struct ranks const *r, value v)
{
  return (value)(c->base + c->start + rank_of(r, ((uintptr_t)v - (uintptr_t)c->base - c->start) / WORD) * WORD);
}

static value final_place(copy const *c, struct ranks const *r, value f)
{
  f = settle(c, f);
  return Is_block(f) && is_own(c, f) ? placed(c, r, f) : f;
}

#define EACH_BLOCK(c, at, h)                                                       \
  for (size_t at = (c)->start, next_ = 0; at < (c)->used && (h = *(header_t *)((c)->base + at), true); at = next_) \
    if (next_ = at + WORD + WORD * Wosize_hd(is_merged(h) ? ((header_t *)((c)->base + at))[1] : h), true)

static void compact(copy *c, struct ranks *r)
{
  header_t h;
  EACH_BLOCK(c, at, h)
    if (!is_merged(h))
      for (size_t w = (at - c->start) / WORD, end = w + 1 + Wosize_hd(h); w < end; w++)
        r->bits[w / 64] |= UINT64_C(1) << (w % 64);
  size_t sum = 0;
  for (size_t i = 0; i <= r->words / 64; i++) {
    r->before[i] = sum;
    sum += (size_t)__builtin_popcountll(r->bits[i]);
  }
  EACH_BLOCK(c, at, h) {
    value v = (value)(c->base + at + WORD);
    if (is_merged(h)) continue;
    if (Tag_hd(h) < No_scan_tag)
      for (mlsize_t i = Tag_hd(h) == Closure_tag ? Start_env_closinfo(Closinfo_val(v)) : 0; i < Wosize_hd(h); i++)
        Field(v, i) = final_place(c, r, Field(v, i));
    else if (Tag_hd(h) == Custom_tag &&
             outheap_region_custom_kind(Custom_ops_val(v)) == OUTHEAP_REGION_CUSTOM_BIGARRAY)
      Caml_ba_array_val(v)->data = (void *)placed(c, r, (value)Caml_ba_array_val(v)->data);
  }
  if (Is_block(c->copied)) c->copied = final_place(c, r, c->copied);
  size_t to = c->start, blocks = 0;
  EACH_BLOCK(c, at, h) {
    if (is_merged(h)) continue;
    size_t bytes = WORD + Wosize_hd(h) * WORD;
    memmove(c->base + to, c->base + at, bytes);
    *(header_t *)(c->base + to) = with(h, OUTHEAP_REGION_BLACK);
    to += bytes;
    blocks++;
  }
  c->used = to;
  c->blocks = blocks - 1; /* the last one is the end */
}

static bool enter_others(struct state *s, struct outheap_region_vector const *others)
{
  for (size_t i = 0; others != NULL && i < others->count; i += 2)
    for (uintptr_t at = others->word[i]; at < others->word[i + 1];) {
      header_t h = *(header_t *)at;
      value v = (value)(at + WORD);
      if (!is_unique(v, h) && enter(&s->set, v, h) == 0) return false;
      at += WORD + WORD * Wosize_hd(h);
    }
  return true;
}

bool outheap_region_share(copy *c, struct outheap_region_vector const *others)
{
  if (!Is_block(c->copied) || !is_own(c, c->copied)) return true;
  struct state s = { c, { NULL, 0, 0 }, { NULL, 0, 0 } };
  struct ranks r = { .words = (c->used - c->start) / WORD };
  size_t bytes = (r.words / 64 + 1) * sizeof(uint64_t);
  bool done = enter_others(&s, others) && merge(&s, whole(c->copied));
  if (done) {
    r.bits = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    done = r.bits != MAP_FAILED;
    if (done) {
      r.before = (size_t *)((char *)r.bits + bytes);
      compact(c, &r);
      munmap(r.bits, 2 * bytes);
    }
  }
  if (s.set.size != 0) munmap(s.set.slot, s.set.size * sizeof(value));
  outheap_region_vector_free(&s.stack);
  if (!done) return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  outheap_region_addresses_unmap(c->base + end, c->mapped - end);
  c->mapped = end;
  outheap_region_addresses_cut(&c->extent, end);
  return true;
}
