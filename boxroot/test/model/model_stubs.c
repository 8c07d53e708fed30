/* SPDX-License-Identifier: MIT */
/* Custom blocks that know whether they are rooted, and whose finalisers call the library back; and blocks that only C
   can make. */
#include "../common/check.h"

#include <stdatomic.h>

typedef struct cell {
  long id;
  atomic_int rooted;       /* roots that hold the block, by the model's own count */
  _Atomic(boxroot) owned;  /* deleted by the finaliser, when there is one */
  int begets;              /* the finaliser creates a root, which holds the immediate `id` */
  atomic_int dead;
} cell;

static atomic_long customs_alive;

typedef struct born { struct born *next; boxroot root; long id; } born;
static _Atomic(born *) all_born;

#define Cell_val(v) (*(cell **)Data_custom_val(v))

static void finalise(value v)
{
  cell *c = Cell_val(v);
  CHECK(atomic_load(&c->dead) == 0, "custom block %ld finalised twice", c->id);
  CHECK(atomic_load(&c->rooted) == 0, "custom block %ld finalised although %d roots hold it", c->id, c->rooted);
  atomic_store(&c->dead, 1);
  boxroot owned = atomic_exchange(&c->owned, NULL);
  if (owned != NULL) boxroot_delete(owned);
  if (c->begets) {
    born *b = malloc(sizeof *b);
    CHECK(b != NULL, "malloc");
    b->root = boxroot_create(Val_long(c->id));
    CHECK(b->root != NULL, "boxroot_create in a finaliser failed");
    b->id = c->id;
    b->next = atomic_load(&all_born);
    while (!atomic_compare_exchange_weak(&all_born, &b->next, b)) {}
  }
  atomic_fetch_sub(&customs_alive, 1);
  free(c);
}

static struct custom_operations operations = { "boxroot.test",
                                               finalise,
                                               custom_compare_default,
                                               custom_hash_default,
                                               custom_serialize_default,
                                               custom_deserialize_default,
                                               custom_compare_ext_default,
                                               custom_fixed_length_default };

/* A custom block; `large` ones are born in the major heap. It takes over the root `owned`, if any. */
value m_custom(value id, value large, value owned, value begets)
{
  cell *c = calloc(1, sizeof *c);
  CHECK(c != NULL, "calloc");
  c->id = Long_val(id);
  atomic_store(&c->owned, root_of_val(owned));
  c->begets = Bool_val(begets);
  atomic_fetch_add(&customs_alive, 1);
  value v = caml_alloc_custom(&operations, Bool_val(large) ? 3000 : sizeof c, 0, 1);
  Cell_val(v) = c;
  return v;
}

value m_custom_cell(value v) { return (value)((uintptr_t)Cell_val(v) | 1); }
value m_custom_owned(value v) { return val_of_root(atomic_load(&Cell_val(v)->owned)); }

/* Whether v is the block of that cell, and in order. */
value m_custom_is(value v, value cell_, value id)
{
  cell *c = (cell *)(cell_ & ~(value)1);
  if (!Is_block(v) || Tag_hd(Hd_val(v)) != Custom_tag || Custom_ops_val(v) != &operations) return Val_false;
  return Val_bool(Cell_val(v) == c && c->id == Long_val(id) && atomic_load(&c->dead) == 0);
}

value m_hold(value c, value n)
{
  atomic_fetch_add(&((cell *)(c & ~(value)1))->rooted, Int_val(n));
  return Val_unit;
}

value m_customs_alive(value unit) { (void)unit; return Val_long(atomic_load(&customs_alive)); }

/* A root created by a finaliser (and what it must hold), or (0, 0). */
value m_born(value unit)
{
  (void)unit;
  static pthread_mutex_t one_taker = PTHREAD_MUTEX_INITIALIZER;
  value pair = caml_alloc_small(2, 0);
  Field(pair, 0) = Field(pair, 1) = Val_int(0);
  pthread_mutex_lock(&one_taker);
  born *b = atomic_load(&all_born);
  while (b != NULL && !atomic_compare_exchange_weak(&all_born, &b, b->next)) {}
  pthread_mutex_unlock(&one_taker);
  if (b != NULL) {
    Field(pair, 0) = val_of_root(b->root);
    Field(pair, 1) = Val_long(b->id);
    free(b);
  }
  return pair;
}

/* Words that would be taken for pointers, did anybody look. */
static uintptr_t word(long id, uintptr_t i) { return ((uintptr_t)id * 0x9e3779b97f4a7c15u + i) & ~(uintptr_t)7; }

value m_abstract(value id, value size)
{
  value v = caml_alloc(Long_val(size), Abstract_tag);
  for (mlsize_t i = 0; i < Wosize_val(v); i++) ((uintptr_t *)v)[i] = word(Long_val(id), i);
  return v;
}
value m_abstract_is(value v, value id, value size)
{
  if (!Is_block(v) || Tag_hd(Hd_val(v)) != Abstract_tag || Wosize_val(v) != (mlsize_t)Long_val(size)) return Val_false;
  for (mlsize_t i = 0; i < Wosize_val(v); i++)
    if (((uintptr_t *)v)[i] != word(Long_val(id), i)) return Val_false;
  return Val_true;
}

/* Many roots at once, without OCaml code in between: creates n roots of the immediates k, k+1 … and deletes them in
   another order. */
value m_storm(value n_, value seed)
{
  long n = Long_val(n_);
  unsigned x = (unsigned)Long_val(seed) | 1;
  boxroot *r = malloc(sizeof *r * (size_t)n);
  CHECK(r != NULL, "malloc");
  for (long i = 0; i < n; i++) {
    r[i] = boxroot_create(Val_long(i));
    CHECK(r[i] != NULL, "boxroot_create failed: %s", boxroot_error_string());
  }
  for (long i = n - 1; i > 0; i--) {
    x = x * 1664525u + 1013904223u;
    long j = (long)(x >> 8) % (i + 1);
    CHECK(Is_long(boxroot_get(r[j])) && Long_val(boxroot_get(r[j])) < n, "root %ld of a storm was changed", j);
    boxroot_delete(r[j]);
    r[j] = r[i];
  }
  if (n > 0) boxroot_delete(r[0]);
  free(r);
  return Val_unit;
}
