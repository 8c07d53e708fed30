/* SPDX-License-Identifier: MIT */
#include "region_share.h"
#include <caml/bigarray.h>
#include <sys/mman.h>

typedef struct outheap_region_copy copy;
#define WORD OUTHEAP_REGION_WORD

/* --- a set of blocks -------------------------------------------------------------------------------------------------
   A hash table of blocks by their contents: header, but for its colour, and fields. It has open addressing; its memory
   comes from the system, as that of vectors does (region_base.h).

   A slot is 0, or has the address of a block in words, and above it as many bits of the block's hash as there is room
   for: nearly all blocks that are not equal are told apart without a look at them. */

/* size: a power of two; 4 * count <= 3 * size. All is 0 if it was not made. */
struct set { uint64_t *slot; size_t size, count; };

#define ADDRESS_BITS (OUTHEAP_REGION_ADDRESS_BITS - 3)
_Static_assert(WORD == 8, "addresses in words have three bits less");

static inline header_t *set_header(value v) { return (header_t *)v - 1; }

static inline value set_block(uint64_t slot)
{
  return (value)((slot & ((UINT64_C(1) << ADDRESS_BITS) - 1)) * WORD);
}

static inline bool set_may_be(uint64_t slot, uint64_t hash) { return (slot ^ hash) >> ADDRESS_BITS == 0; }

static inline uint64_t set_mix(uint64_t h, uint64_t w)
{
  h = (h ^ w) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

static inline uint64_t set_hash(value v, header_t h)
{
  uint64_t x = set_mix(0, h & ~OUTHEAP_REGION_BLACK);
  for (mlsize_t i = 0; i < Wosize_hd(h); i++) x = set_mix(x, (uint64_t)Field(v, i));
  return x ^ x >> 32;
}

/* Makes an empty set with room for so many blocks at least. Returns false if there is no memory. */
static inline bool set_make(struct set *s, size_t blocks)
{
  *s = (struct set){ NULL, (size_t)1 << 14, 0 };
  while (3 * s->size < 4 * (blocks + 1)) s->size *= 2;
  s->slot = mmap(NULL, s->size * sizeof *s->slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
  if (s->slot == MAP_FAILED) {
    *s = (struct set){ NULL, 0, 0 };
    return false;
  }
#ifdef MADV_HUGEPAGE
  /* It is used at random, and not for long. Maximal sharing takes about 5 % less time (1 to 7 %). */
  (void)madvise(s->slot, s->size * sizeof *s->slot, MADV_HUGEPAGE);
#endif
  return true;
}

static inline void set_free(struct set *s)
{
  if (s->size != 0) munmap(s->slot, s->size * sizeof *s->slot);
}

static __attribute__((noinline)) bool set_grow(struct set *s)
{
  struct set new;
  if (!set_make(&new, 2 * s->count)) return false;
  new.count = s->count;
  for (size_t i = 0; i < s->size; i++) {
    if (s->slot[i] == 0) continue;
    value v = set_block(s->slot[i]);
    size_t j = set_hash(v, *set_header(v)) & (new.size - 1);
    while (new.slot[j] != 0) j = (j + 1) & (new.size - 1);
    new.slot[j] = s->slot[i];
  }
  set_free(s);
  *s = new;
  return true;
}

static inline bool set_same(value a, value b, header_t h)
{
  if (((*set_header(a) ^ h) & ~OUTHEAP_REGION_BLACK) != 0) return false;
  for (mlsize_t i = 0; i < Wosize_hd(h); i++)
    if (Field(a, i) != Field(b, i)) return false;
  return true;
}

/* Adds the block `v`, which has the header `h` and this hash, unless an equal one is there. Returns the one that is
   there now; 0 if there is no memory. */
static inline value set_add(struct set *s, value v, header_t h, uint64_t hash)
{
  if (4 * (s->count + 1) > 3 * s->size && !set_grow(s)) return 0;
  size_t j = hash & (s->size - 1);
  for (; s->slot[j] != 0; j = (j + 1) & (s->size - 1)) {
    value there = set_block(s->slot[j]);
    if (set_may_be(s->slot[j], hash) && set_same(there, v, h)) return there;
  }
  s->slot[j] = (uint64_t)v / WORD | hash >> ADDRESS_BITS << ADDRESS_BITS;
  s->count++;
  return v;
}

/* Prefetch what will be read: first the slot of a hash; later, when that is in the cache, the block it leads to. */
static inline void set_prefetch_slot(struct set const *s, uint64_t hash)
{
  __builtin_prefetch(&s->slot[hash & (s->size - 1)]);
}

static inline void set_prefetch_block(struct set const *s, uint64_t hash)
{
  uint64_t slot = s->slot[hash & (s->size - 1)];
  if (slot != 0 && set_may_be(slot, hash)) __builtin_prefetch(set_header(set_block(slot)));
}

/* --- colours ---------------------------------------------------------------------------------------------------------
   The colour of a block's header in the copy says how far it has come:
     UNSEEN   all at first
     OPEN     its fields are being resolved, and it is on the stack; or they are resolved, and it is in the queue
     KEPT     it stays
     MERGED   it is equal to another one: the header says where that is (an address in words, then ten bits of zero),
              and the first field is the block's own header */

#define UNSEEN OUTHEAP_REGION_BLACK
#define OPEN ((header_t)2 << 8)
#define KEPT ((header_t)1 << 8)
#define MERGED ((header_t)0)
static inline header_t colour(header_t h) { return h & OUTHEAP_REGION_BLACK; }
/* The header of a function within a closure may have any colour, but its tag is not 0. */
static inline bool is_merged(header_t h) { return (h & 0x3ff) == MERGED; }
static inline header_t with(header_t h, header_t c) { return (h & ~OUTHEAP_REGION_BLACK) | c; }

/* Blocks whose fields are resolved; they are OPEN until it is their turn. */
#define QUEUE_LENGTH 32 /* a power of two */
/* in - QUEUE_LENGTH <= out <= in */
struct queue { struct { value v; uint64_t hash; } entry[QUEUE_LENGTH]; size_t in, out; };

struct state {
  copy *c;
  struct queue queue;
  struct outheap_region_vector stack; /* pairs: a block, its next field */
  struct set set; /* kept blocks, and those of other images */
};

static inline bool is_own(copy const *c, value v) { return (uintptr_t)v - (uintptr_t)c->base < c->used; }

/* Returns the block that a pointer into the copy leads to, be it to its beginning or to a function inside. */
static inline value whole(value v)
{
  header_t h = *set_header(v);
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

/* Returns what a field should hold now: if it leads to a merged block, the block that this is equal to. */
static inline value resolve(copy const *c, value f)
{
  if (!Is_block(f) || !is_own(c, f)) return f;
  header_t h = *set_header(f);
  return is_merged(h) ? merged_into(h) : f;
}

static inline mlsize_t first_field(value v, header_t h)
{
  return Tag_hd(h) == Closure_tag ? Start_env_closinfo(Closinfo_val(v)) : 0;
}

static inline mlsize_t end_of_fields(header_t h) { return Tag_hd(h) < No_scan_tag ? Wosize_hd(h) : 0; }

/* Decides on a block whose fields are resolved: it is kept, or merged into an equal one. */
static inline bool keep_or_merge(struct state *s, value v, header_t h, uint64_t hash)
{
  value equal = set_add(&s->set, v, h, hash);
  if (equal == 0) return false;
  *set_header(v) = equal == v ? with(h, KEPT) : merged_header(equal);
  if (equal != v) Field(v, 0) = (value)with(h, UNSEEN);
  return true;
}

/* Closes an open block: all blocks that its fields lead to are done, or are open as well, on a cycle. */
static bool close_block(struct state *s, value v)
{
  header_t h = *set_header(v);
  for (mlsize_t i = first_field(v, h); i < end_of_fields(h); i++) Field(v, i) = resolve(s->c, Field(v, i));
  if (!is_unique(v, h)) return keep_or_merge(s, v, h, set_hash(v, h));
  *set_header(v) = with(h, KEPT);
  return true;
}

static inline bool next_of_queue(struct state *s)
{
  struct queue *q = &s->queue;
  size_t i = q->out++ % QUEUE_LENGTH;
  value v = q->entry[i].v;
  return keep_or_merge(s, v, *set_header(v), q->entry[i].hash);
}

static bool empty_queue(struct state *s)
{
  while (s->queue.out != s->queue.in)
    if (!next_of_queue(s)) return false;
  return true;
}

static bool open_block(struct state *s, value v)
{
  header_t *at = set_header(v);
  *at = with(*at, OPEN);
  return outheap_region_vector_push(&s->stack, (uintptr_t)v) && outheap_region_vector_push(&s->stack, 0);
}

static bool merge(struct state *s, value root)
{
  if (!open_block(s, root)) return false;
  while (s->stack.count != 0) {
    uintptr_t *top = s->stack.word + s->stack.count - 2;
    value v = (value)top[0];
    header_t h = *set_header(v);
    mlsize_t i = top[1], words = end_of_fields(h);
    if (i == 0) i = first_field(v, h);
    value next = 0;
    for (; i < words && next == 0; i++) {
      value f = Field(v, i);
      if (Is_block(f) && is_own(s->c, f) && !is_merged(*set_header(f))) {
        f = whole(f);
        if (colour(*set_header(f)) == OPEN && !empty_queue(s)) return false;
        if (!is_merged(*set_header(f)) && colour(*set_header(f)) == UNSEEN) next = f;
      }
    }
    top[1] = i;
    if (next != 0 ? !open_block(s, next) : !(s->stack.count -= 2, close_block(s, v))) return false;
  }
  return true;
}

/* --- compaction ------------------------------------------------------------------------------------------------------
   What is kept moves together. The new address of a block is given by the number of kept words before it (its rank),
   which is found with a bit for each word of the copy, and a count for each 64 of them. */

struct ranks { uint64_t *bits; size_t *before, words; };

static size_t rank_of(struct ranks const *r, size_t word)
{
  uint64_t below = r->bits[word / 64] & ((UINT64_C(1) << (word % 64)) - 1);
  return r->before[word / 64] + (size_t)__builtin_popcountll(below);
}

static inline value moved(copy const *c, struct ranks const *r, value v)
{
  return (value)(c->base + c->start + rank_of(r, ((uintptr_t)v - (uintptr_t)c->base - c->start) / WORD) * WORD);
}

static value final_value(copy const *c, struct ranks const *r, value f)
{
  f = resolve(c, f);
  return Is_block(f) && is_own(c, f) ? moved(c, r, f) : f;
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
    for (mlsize_t i = first_field(v, h); i < end_of_fields(h); i++) Field(v, i) = final_value(c, r, Field(v, i));
    if (Tag_hd(h) == Custom_tag &&
             outheap_region_custom_kind(Custom_ops_val(v)) == OUTHEAP_REGION_CUSTOM_BIGARRAY)
      Caml_ba_array_val(v)->data = (void *)moved(c, r, (value)Caml_ba_array_val(v)->data);
  }
  if (Is_block(c->copied)) c->copied = final_value(c, r, c->copied);
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
  c->blocks = blocks - 1; /* the last one marks the end */
}

static bool add_others(struct state *s, struct outheap_region_vector const *others)
{
  for (size_t i = 0; others != NULL && i < others->count; i += 2)
    for (uintptr_t at = others->word[i]; at < others->word[i + 1];) {
      header_t h = *(header_t *)at;
      value v = (value)(at + WORD);
      if (!is_unique(v, h) && set_add(&s->set, v, h, set_hash(v, h)) == 0) return false;
      at += WORD + WORD * Wosize_hd(h);
    }
  return true;
}

/* Sets a bit for each word of the copy in which a block begins. Returns the number of words that the bits take. */
static size_t mark_beginnings(copy const *c, uint64_t *bits)
{
  size_t last = 0;
  for (size_t at = c->start; at < c->used; at += WORD + WORD * Wosize_hd(*(header_t *)(c->base + at))) {
    last = (at - c->start) / WORD;
    bits[last / 64] |= UINT64_C(1) << (last % 64);
  }
  return last / 64 + 1;
}

/* --- the order -------------------------------------------------------------------------------------------------------
   Blocks were copied breadth first, so that what a block refers to mostly comes behind it, and near to what its
   neighbours refer to. So the walk goes from the end to the beginning: nearly all blocks that it comes to have fields
   whose blocks are done. Those blocks wait in a queue while their slots of the set are prefetched, and then the blocks
   that these slots lead to. */

static inline bool join_queue(struct state *s, value v, header_t h)
{
  struct queue *q = &s->queue;
  uint64_t hash = set_hash(v, h);
  set_prefetch_slot(&s->set, hash);
  if (q->in - q->out == QUEUE_LENGTH && !next_of_queue(s)) return false;
  q->entry[q->in % QUEUE_LENGTH].v = v;
  q->entry[q->in++ % QUEUE_LENGTH].hash = hash;
  if (q->in - q->out >= QUEUE_LENGTH / 2)
    set_prefetch_block(&s->set, q->entry[(q->in - QUEUE_LENGTH / 2) % QUEUE_LENGTH].hash);
  return true;
}

/* Resolves the fields of a block that is OPEN, but not in the queue. */
static inline bool resolve_fields(struct state *s, value v, header_t h)
{
  for (mlsize_t i = first_field(v, h); i < end_of_fields(h); i++) {
    value f = Field(v, i);
    if (!Is_block(f) || !is_own(s->c, f)) continue;
    if (!is_merged(*set_header(f))) {
      value block = whole(f);
      header_t done = colour(*set_header(block));
      if (done != KEPT && (done == UNSEEN ? !merge(s, block) : !empty_queue(s))) return false;
    }
    Field(v, i) = resolve(s->c, f);
  }
  return true;
}

/* The headers that a block's fields lead to are prefetched when the walk is so many words away from it. */
#define PREFETCH_WORDS 96

static inline void prefetch_fields(copy const *c, header_t const *at, mlsize_t words)
{
  if ((size_t)((char const *)at - c->base) < c->start + PREFETCH_WORDS * WORD) return;
  for (value const *f = (value const *)at - PREFETCH_WORDS, *end = f + words; f < end; f++)
    if (Is_block(*f) && is_own(c, *f)) __builtin_prefetch(set_header(*f));
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
      if (end_of_fields(h) <= PREFETCH_WORDS) prefetch_fields(c, at, end_of_fields(h) + 1);
      *at = with(h, OPEN);
      if (!resolve_fields(s, v, h)) return false;
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
    done = set_make(&s.set, c->blocks) && add_others(&s, others) && merge_all(&s, r.bits, words);
    if (done) {
      memset(r.bits, 0, bytes);
      compact(c, &r);
    }
    munmap(r.bits, 2 * bytes);
  }
  set_free(&s.set);
  outheap_region_vector_free(&s.stack);
  if (!done) return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  outheap_region_addresses_unmap(c->base + end, c->mapped - end);
  c->mapped = end;
  outheap_region_addresses_cut(&c->extent, end);
  return true;
}
