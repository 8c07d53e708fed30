/* SPDX-License-Identifier: MIT */
#define CAML_INTERNALS
#include "hashcons_hash.h"
#include <caml/address_class.h>
#include <caml/custom.h>
#include <caml/hash.h>
#include <outheap.h>

#pragma weak outheap_classify

enum {
  NUMBERS = 64,     /* that count */
  BLOCKS = 128,     /* that are looked at */
  BEHIND = 6,       /* numbers that count behind what looks hash-consed */
  BEHIND_ROOM = 64,
  LONG = 8,         /* fields of a block that is looked at from its beginning */
  FORWARDS = 1000   /* a value may lead to itself */
};

/* Values to look at, in the order in which they were met. */
struct queue { value *at; int begin, end, room; };

struct state {
  uint64_t hash;
  int numbers; /* that may still count */
  struct queue now, behind;
};

static bool is_readable(value v)
{
#if OUTHEAP_REGION_OCAML5
  if (outheap_classify == NULL) return true;
  enum outheap_kind k = outheap_classify((void const *)v);
  return k == OUTHEAP_MAJOR || k == OUTHEAP_YOUNG || k == OUTHEAP_VALUES;
#else
  return Is_in_value_area(v);
#endif
}

static void add(struct queue *q, value v)
{
  if (q->end < q->room) q->at[q->end++] = v;
}

/* A multiplication carries upwards, a shift brings it down. */
static inline uint64_t mix(uint64_t hash, uint64_t with)
{
  uint64_t h = (hash ^ with) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

static inline void number(struct state *s, uint64_t n)
{
  s->hash = mix(s->hash, n);
  s->numbers--;
}

/* An int64 or a nativeint: the upper half of what has both halves equal does not count for their own function. */
static bool is_integer(value v)
{
  char const *i = Custom_ops_val(v)->identifier;
  return i[0] == '_' && (i[1] == 'j' || i[1] == 'n') && i[2] == 0;
}

static bool looks_hash_consed(value v)
{
  return Wosize_val(v) == 3 && Tag_val(v) == 0 && Is_long(Field(v, 0)) && Is_long(Field(v, 1)) &&
         Is_block(Field(v, 2)) && Long_val(Field(v, 0)) >= 0 && Long_val(Field(v, 1)) > 0;
}

/* Elements of a long array: those at this distance from each other, the last one included. */
struct share { mlsize_t first, step; };
static inline struct share share(struct state const *s, mlsize_t n)
{
  mlsize_t most = s->numbers < LONG ? LONG : (mlsize_t)s->numbers;
  if (n <= most) return (struct share){ 0, 1 };
  mlsize_t step = n / (most + 1) + 1;
  return (struct share){ (n - 1) % step, step };
}

static void fields(struct state *s, struct queue *next, value v)
{
  mlsize_t n = Wosize_val(v);
  struct share of = share(s, n);
  for (mlsize_t i = of.first; i < n && s->numbers > 0; i += of.step) {
    value f = Field(v, i);
    if (Is_long(f)) number(s, (uint64_t)f);
    else add(next, f);
  }
}

static void floats(struct state *s, value v)
{
  mlsize_t n = Wosize_val(v) / Double_wosize;
  struct share of = share(s, n);
  for (mlsize_t i = of.first; i < n && s->numbers > 0; i += of.step)
    number(s, caml_hash_mix_double(0, Double_flat_field(v, i)));
}

/* Looks at a value; what it leads to comes into `next`. */
static void look(struct state *s, struct queue *next, value v)
{
  for (int i = 0; Is_block(v); i++) {
    if (!is_readable(v) || i == FORWARDS) return;
    if (Tag_val(v) != Forward_tag) break;
    v = Forward_val(v);
  }
  if (Is_long(v)) number(s, (uint64_t)v);
  else switch (Tag_val(v)) {
    case String_tag: number(s, caml_hash_mix_string(0, v)); break;
    case Double_tag: number(s, caml_hash_mix_double(0, Double_val(v))); break;
    case Custom_tag:
      if (is_integer(v)) number(s, *(uint64_t const *)Data_custom_val(v));
      else if (Custom_ops_val(v)->hash != NULL) number(s, (uint32_t)Custom_ops_val(v)->hash(v));
      break;
    case Object_tag: number(s, (uint64_t)Oid_val(v)); break;
    case Double_array_tag:
      s->hash = mix(s->hash, Wosize_val(v));
      floats(s, v);
      break;
    default:
      if (Tag_val(v) >= OUTHEAP_REGION_SPECIAL) break; /* functions, lazy values, abstract ones, continuations */
      s->hash = mix(s->hash, (uint64_t)Wosize_val(v) << 8 | Tag_val(v));
      if (next == &s->now && looks_hash_consed(v)) {
        number(s, (uint64_t)Field(v, 0));
        number(s, (uint64_t)Field(v, 1));
        add(&s->behind, Field(v, 2));
      }
      else fields(s, next, v);
  }
}

static void drain(struct state *s, struct queue *q)
{
  while (q->begin < q->end && s->numbers > 0) look(s, q, q->at[q->begin++]);
}

intnat outheap_hashcons_hash(value v)
{
  value now[BLOCKS], behind[BEHIND_ROOM];
  struct state s = { 0, NUMBERS, { now, 0, 0, BLOCKS }, { behind, 0, 0, BEHIND_ROOM } };
  add(&s.now, v);
  drain(&s, &s.now);
  s.numbers = BEHIND;
  drain(&s, &s.behind);
  return (intnat)(mix(s.hash, 0) >> 34);
}
