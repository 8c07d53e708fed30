/* SPDX-License-Identifier: MIT */
#include "region_share.h"
#include "region_custom.h"
#include "region_set.h"
#include <caml/bigarray.h>
#include <sys/mman.h>

typedef struct outheap_region_copy copy;
#define WORD OUTHEAP_REGION_WORD

/* The colour of a block's header in the copy:
     UNSEEN   all at first
     OPEN     its fields are being looked at: it is on the stack; or it is in the queue
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

/* Blocks whose fields are settled, OPEN until it is their turn. */
#define WAITING 32 /* a power of two */
struct queue { struct { value v; uint64_t hash; } entry[WAITING]; size_t in, out; }; /* in - WAITING <= out <= in */

struct state {
  copy *c;
  struct queue queue;
  struct outheap_region_vector stack; /* pairs: a block, its next field */
  struct outheap_region_set set; /* kept blocks, and those of other images */
};

static inline bool is_own(copy const *c, value v) { return (uintptr_t)v - (uintptr_t)c->base < c->used; }

/* The block that a pointer into the copy leads to, by itself or to a function inside. */
static inline value whole(value v)
{
  header_t h = *outheap_region_set_header(v);
  return Tag_hd(h) == Infix_tag ? v - (value)Infix_offset_hd(h) : v;
}

static inline value merged_into(header_t h) { return (value)((h >> 10) * WORD); }
static inline header_t merged_header(value into) { return (header_t)into / WORD << 10; }

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
  header_t h = *outheap_region_set_header(f);
  return is_merged(h) ? merged_into(h) : f;
}

static inline mlsize_t first_field(value v, header_t h)
{
  return Tag_hd(h) == Closure_tag ? Start_env_closinfo(Closinfo_val(v)) : 0;
}

static inline mlsize_t end_of_fields(header_t h) { return Tag_hd(h) < No_scan_tag ? Wosize_hd(h) : 0; }

/* A block whose fields are settled is kept, or merged into an equal one. */
static inline bool decide(struct state *s, value v, header_t h, uint64_t hash)
{
  value equal = outheap_region_set_enter(&s->set, v, h, hash);
  if (equal == 0) return false;
  *outheap_region_set_header(v) = equal == v ? with(h, KEPT) : merged_header(equal);
  if (equal != v) Field(v, 0) = (value)with(h, UNSEEN);
  return true;
}

/* All of its fields are done. */
static bool close_block(struct state *s, value v)
{
  header_t h = *outheap_region_set_header(v);
  for (mlsize_t i = first_field(v, h); i < end_of_fields(h); i++) Field(v, i) = settle(s->c, Field(v, i));
  if (!is_unique(v, h)) return decide(s, v, h, outheap_region_set_hash(v, h));
  *outheap_region_set_header(v) = with(h, KEPT);
  return true;
}

static inline bool next_of_queue(struct state *s)
{
  struct queue *q = &s->queue;
  size_t i = q->out++ % WAITING;
  value v = q->entry[i].v;
  return decide(s, v, *outheap_region_set_header(v), q->entry[i].hash);
}

static bool empty_queue(struct state *s)
{
  while (s->queue.out != s->queue.in)
    if (!next_of_queue(s)) return false;
  return true;
}

static bool open_block(struct state *s, value v)
{
  header_t *at = outheap_region_set_header(v);
  *at = with(*at, OPEN);
  return outheap_region_vector_push(&s->stack, (uintptr_t)v) && outheap_region_vector_push(&s->stack, 0);
}

static bool merge(struct state *s, value root)
{
  if (!open_block(s, root)) return false;
  while (s->stack.count != 0) {
    uintptr_t *top = s->stack.word + s->stack.count - 2;
    value v = (value)top[0];
    header_t h = *outheap_region_set_header(v);
    mlsize_t i = top[1], words = end_of_fields(h);
    if (i == 0) i = first_field(v, h);
    value next = 0;
    for (; i < words && next == 0; i++) {
      value f = Field(v, i);
      if (Is_block(f) && is_own(s->c, f) && !is_merged(*outheap_region_set_header(f))) {
        f = whole(f);
        if (colour(*outheap_region_set_header(f)) == OPEN && !empty_queue(s)) return false;
        if (!is_merged(*outheap_region_set_header(f)) && colour(*outheap_region_set_header(f)) == UNSEEN) next = f;
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

static inline void set_bits(uint64_t *bits, size_t from, size_t count)
{
  for (; from % 64 + count > 64; count -= 64 - from % 64, from += 64 - from % 64)
    bits[from / 64] |= ~UINT64_C(0) << (from % 64);
  bits[from / 64] |= (~UINT64_C(0) >> (64 - count)) << (from % 64);
}

static void compact(copy *c, struct ranks *r)
{
  header_t h;
  EACH_BLOCK(c, at, h)
    if (!is_merged(h)) set_bits(r->bits, (at - c->start) / WORD, 1 + Wosize_hd(h));
  size_t sum = 0;
  for (size_t i = 0; i <= r->words / 64; i++) {
    r->before[i] = sum;
    sum += (size_t)__builtin_popcountll(r->bits[i]);
  }
  EACH_BLOCK(c, at, h) {
    value v = (value)(c->base + at + WORD);
    if (is_merged(h)) continue;
    for (mlsize_t i = first_field(v, h); i < end_of_fields(h); i++) Field(v, i) = final_place(c, r, Field(v, i));
    if (Tag_hd(h) == Custom_tag &&
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
      if (!is_unique(v, h) && outheap_region_set_enter(&s->set, v, h, outheap_region_set_hash(v, h)) == 0) return false;
      at += WORD + WORD * Wosize_hd(h);
    }
  return true;
}

/* A bit for each word of the copy in which a block begins; result: the bits' words. */
static size_t mark_beginnings(copy const *c, uint64_t *bits)
{
  size_t last = 0;
  for (size_t at = c->start; at < c->used; at += WORD + WORD * Wosize_hd(*(header_t *)(c->base + at))) {
    last = (at - c->start) / WORD;
    bits[last / 64] |= UINT64_C(1) << (last % 64);
  }
  return last / 64 + 1;
}

/* Blocks were copied breadth first, so that what a block refers to comes behind it, mostly, and near to what its
   neighbours refer to. From the end to the beginning, nearly all blocks have fields that are done. These wait in a
   queue for their slots of the set to be fetched, and then for the blocks that these lead to. */

static inline bool join_queue(struct state *s, value v, header_t h)
{
  struct queue *q = &s->queue;
  uint64_t hash = outheap_region_set_hash(v, h);
  outheap_region_set_fetch_slot(&s->set, hash);
  if (q->in - q->out == WAITING && !next_of_queue(s)) return false;
  q->entry[q->in % WAITING].v = v;
  q->entry[q->in++ % WAITING].hash = hash;
  if (q->in - q->out >= WAITING / 2)
    outheap_region_set_fetch_block(&s->set, q->entry[(q->in - WAITING / 2) % WAITING].hash);
  return true;
}

/* Settles the fields of a block that is OPEN, but not in the queue. */
static inline bool settle_fields(struct state *s, value v, header_t h)
{
  for (mlsize_t i = first_field(v, h); i < end_of_fields(h); i++) {
    value f = Field(v, i);
    if (!Is_block(f) || !is_own(s->c, f)) continue;
    if (!is_merged(*outheap_region_set_header(f))) {
      value block = whole(f);
      header_t done = colour(*outheap_region_set_header(block));
      if (done != KEPT && (done == UNSEEN ? !merge(s, block) : !empty_queue(s))) return false;
    }
    Field(v, i) = settle(s->c, f);
  }
  return true;
}

/* The headers that a block's fields lead to are fetched when the walk is so many words away from it. */
#define AHEAD 96

static inline void fetch_fields(copy const *c, header_t const *at, mlsize_t words)
{
  if ((size_t)((char const *)at - c->base) < c->start + AHEAD * WORD) return;
  for (value const *f = (value const *)at - AHEAD, *end = f + words; f < end; f++)
    if (Is_block(*f) && is_own(c, *f)) __builtin_prefetch(outheap_region_set_header(*f));
}

static bool merge_all(struct state *s, uint64_t const *bits, size_t words)
{
  copy *c = s->c;
  for (size_t i = words; i-- != 0;)
    for (uint64_t left = bits[i]; left != 0;) {
      int bit = 63 - __builtin_clzll(left);
      left ^= UINT64_C(1) << bit;
      header_t *at = (header_t *)(c->base + c->start) + i * 64 + (size_t)bit, h = *at;
      value v = (value)(at + 1);
      if (is_merged(h) || colour(h) != UNSEEN) continue;
      if (end_of_fields(h) <= AHEAD) fetch_fields(c, at, end_of_fields(h) + 1);
      *at = with(h, OPEN);
      if (!settle_fields(s, v, h)) return false;
      if (is_unique(v, h)) *at = with(h, KEPT);
      else if (!join_queue(s, v, h)) return false;
    }
  return empty_queue(s);
}

bool outheap_region_share(copy *c, struct outheap_region_vector const *others)
{
  if (!Is_block(c->copied) || !is_own(c, c->copied)) return true;
  struct state s = { .c = c };
  struct ranks r = { .words = (c->used - c->start) / WORD };
  size_t bytes = (r.words / 64 + 1) * sizeof(uint64_t);
  r.bits = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool done = r.bits != MAP_FAILED;
  if (done) {
    r.before = (size_t *)((char *)r.bits + bytes);
    size_t words = mark_beginnings(c, r.bits);
    done = outheap_region_set_make(&s.set, c->blocks) && enter_others(&s, others) && merge_all(&s, r.bits, words);
    if (done) {
      memset(r.bits, 0, bytes);
      compact(c, &r);
    }
    munmap(r.bits, 2 * bytes);
  }
  outheap_region_set_drop(&s.set);
  outheap_region_vector_free(&s.stack);
  if (!done) return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  outheap_region_addresses_unmap(c->base + end, c->mapped - end);
  c->mapped = end;
  outheap_region_addresses_cut(&c->extent, end);
  return true;
}
