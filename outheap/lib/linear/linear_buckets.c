/* SPDX-License-Identifier: MIT */
/* Buckets of tables: arrays of words outside the heap. The word in front says how many there are. */
#include "linear_lock.h"
#include "linear_move.h"
#include <stdlib.h>

/* The words of the first segments of all tables, and how many of them the collector's pace knows. A table that was
   large and has few elements still has its first segment, so the number of its elements does not tell the pace what a
   forgotten table holds. Invariant: paced <= used. With the common lock. */
static struct { size_t used, paced; } first_words;

enum { TOLD = 1 << 18 /* at a time */, FOR_NOTHING = 1 << 20 };

static void count_words(size_t words)
{
  size_t made = 0, most = 0;
  outheap_linear_lock_take(NULL);
  first_words.used += words;
  if (first_words.used - first_words.paced >= TOLD) {
    made = first_words.used - first_words.paced;
    most = FOR_NOTHING + first_words.used / 4;
    first_words.paced = first_words.used;
  }
  outheap_linear_lock_give(NULL);
  if (made != 0) outheap_region_pace(made, most);
}

static void discount_words(size_t words)
{
  outheap_linear_lock_take(NULL);
  first_words.used -= words;
  if (first_words.used < first_words.paced) first_words.paced = first_words.used;
  outheap_linear_lock_give(NULL);
}

static size_t *in_front(value buckets) { return (size_t *)(buckets & ~(value)1) - 1; }

/* These buckets, or none (0), with more words or fewer, elsewhere: the address as an immediate. 0: there is no memory,
   and they are what they were. `first`: of a table. */
value outheap_linear_ml_buckets_resize(value buckets, value words, value first)
{
  size_t *old = buckets == Val_long(0) ? NULL : in_front(buckets);
  size_t had = old == NULL ? 0 : *old, n = (size_t)Long_val(words);
  size_t *new = realloc(old, (n + 1) * sizeof *new);
  if (new == NULL) return Val_long(0);
  *new = n;
  for (size_t i = had; i < n; i++) ((value *)new)[1 + i] = Val_long(0); /* for the barrier, in bytecode */
  if (Bool_val(first) && n > had) count_words(n - had);
  else if (Bool_val(first)) discount_words(had - n);
  return outheap_linear_immediate(new + 1);
}

value outheap_linear_ml_buckets_free(value buckets, value first)
{
  if (buckets == Val_long(0)) return Val_unit;
  if (Bool_val(first)) discount_words(*in_front(buckets));
  free(in_front(buckets));
  return Val_unit;
}

/* Moves the cells of one bucket whose hash, of which `mask` is kept, is `n`, to another. */
value outheap_linear_ml_divide(value from, value into, value mask, value n)
{
  value stay = Val_long(0), go = Val_long(0);
  value *place = (value *)(from & ~(value)1);
  for (value c = *place, next; Is_block(c); c = next) {
    value *list = (Long_val(Field(c, 3)) & Long_val(mask)) == Long_val(n) ? &go : &stay;
    next = Field(c, 2);
    Field(c, 2) = *list;
    *list = c;
  }
  *place = stay;
  *(value *)(into & ~(value)1) = go;
  return Val_unit;
}

/* The last bucket goes into the one that it was divided from, and what no bucket is in any more is freed. */
static void unite_last(struct outheap_linear_buckets *b)
{
  intnat last = Long_val(b->count) - 1, half = Long_val(b->half);
  if (last < half) half /= 2;
  value *from = outheap_linear_bucket(b, last), *into = outheap_linear_bucket(b, last - half);
  while (Is_block(*into)) into = (value *)*into + 2;
  *into = *from;
  *from = Val_long(0);
  b->count = Val_long(last);
  b->half = Val_long(half);
  value *segment = (value *)b->segments + last / OUTHEAP_LINEAR_SEGMENT;
  if (last % OUTHEAP_LINEAR_SEGMENT == 0) {
    outheap_linear_ml_buckets_free(*segment, Val_false);
    *segment = Val_long(0);
  }
  else if (last < OUTHEAP_LINEAR_SEGMENT && (last & (last - 1)) == 0) {
    value fewer = outheap_linear_ml_buckets_resize(*segment, Val_long(last), Val_true);
    if (fewer != Val_long(0)) *segment = fewer;
  }
}

/* Makes the buckets fewer, by `most` at most, while there are more than four for each of `size` elements, and more than
   `least`. */
value outheap_linear_ml_buckets_shrink(value buckets, value size, value least, value most)
{
  struct outheap_linear_buckets *b = (struct outheap_linear_buckets *)buckets;
  for (intnat i = Long_val(most); i > 0 && Long_val(b->count) > 4 * Long_val(size) && b->count > least; i--)
    unite_last(b);
  return Val_unit;
}

/* Takes a cell out of the chain of its bucket. */
value outheap_linear_ml_unchain(value bucket, value cell)
{
  value *place = (value *)(bucket & ~(value)1);
  while (*place != cell) place = (value *)*place + 2;
  *place = Field(cell, 2);
  return Val_unit;
}
