/* SPDX-License-Identifier: MIT */
/* Cells of a program's own types. */
#include "linear_contents.h"
#include "linear_pool.h"
#include <caml/fail.h>
#include <stdlib.h>

typedef struct outheap_linear_pool pool;
typedef struct outheap_linear_group group;

enum { DONE, NOT_A_CELL, MOVED, NO_MEMORY, NOT_A_BLOCK, OTHER_SHAPE, NOT_PLAIN /* + the field */ };

static group *group_of(value v) { return outheap_linear_address(v); }

value outheap_linear_ml_group(value unit)
{
  group *g = calloc(1, sizeof *g);
  (void)unit;
  if (g == NULL) caml_raise_out_of_memory();
  return outheap_linear_immediate(g);
}

/* The pool after `p`, the first one after 0; 0: there is none. */
value outheap_linear_ml_next(value g, value p)
{
  pool *before = outheap_linear_address(p);
  pool *next = before == NULL ? __atomic_load_n(&group_of(g)->pools, __ATOMIC_ACQUIRE) : before->next;
  return next == NULL ? Val_long(0) : outheap_linear_immediate(next);
}

/* An extensible type, such as exn: its blocks begin with their constructor, a block of this tag. */
static bool is_extensible(value v)
{
  value f = Field(v, 0);
  return Tag_val(v) == 0 && Is_block(f) && outheap_region_marker_is_value((uintptr_t)f) && Tag_val(f) == Object_tag;
}

/* Is this a block that a polymorphic variant or an extensible type cannot have? The first has the hash of its
   constructor, a number of 31 bits, and one argument. */
value outheap_linear_ml_is_ordinary(value v)
{
  intnat most = (intnat)1 << 30;
  if (!Is_block(v) || Wosize_val(v) == 0 || Tag_val(v) >= OUTHEAP_REGION_SPECIAL || is_extensible(v)) return Val_false;
  return Val_bool(Tag_val(v) != 0 || Wosize_val(v) != 2 || Is_block(Field(v, 0)) || Long_val(Field(v, 0)) < -most ||
                  Long_val(Field(v, 0)) >= most);
}

/* Can this block be copied into a cell? Blocks of ordinary constructors, tuples and records, whose fields are plain, or
   cells of this group that are in use. */
static intnat refusal(group *g, value v)
{
  if (!Is_block(v) || !outheap_region_marker_is_value((uintptr_t)v) || Tag_val(v) >= OUTHEAP_REGION_SPECIAL ||
      Wosize_val(v) == 0 || Wosize_val(v) > OUTHEAP_LINEAR_MOST)
    return NOT_A_BLOCK;
  for (mlsize_t i = 0; i < Wosize_val(v); i++) {
    value f = Field(v, i);
    uint32_t *state;
    if (!Is_block(f)) continue;
    state = outheap_linear_cell_state(g, f);
    if (state == NULL && !outheap_linear_contents_plain(f)) return NOT_PLAIN + (intnat)i;
    if (state != NULL && __atomic_load_n(state, __ATOMIC_RELAXED) != OUTHEAP_LINEAR_LIVE) return MOVED;
  }
  return DONE;
}

/* From one state to another. Acquire: what the last one who changed it wrote is seen. Where one domain runs, nobody
   comes in between. */
static bool change(uint32_t *state, uint32_t from, uint32_t to)
{
  if (state != NULL && outheap_linear_alone()) {
    bool done = *state == from;
    if (done) *state = to;
    return done;
  }
  return state != NULL && __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static uint64_t shape_of(value v) { return outheap_linear_shape(Wosize_val(v), Tag_val(v)); }

static void fill(value cell, value v)
{
  for (mlsize_t i = 0; i < Wosize_val(v); i++) Field(cell, i) = Field(v, i);
}

/* Copies the block `v` into a new cell: that, or a reason as an immediate. */
value outheap_linear_ml_make(value g, value v)
{
  intnat why = refusal(group_of(g), v);
  if (why != DONE) return Val_long(why);
  pool *p = outheap_linear_group_pool(group_of(g), Wosize_val(v), shape_of(v));
  value cell = p == NULL ? 0 : outheap_linear_cell_new(p, Wosize_val(v), Tag_val(v), true);
  if (cell == 0) return Val_long(NO_MEMORY);
  fill(cell, v);
  return cell;
}

/* A token is the address of a cell, in words, and the number of the taking; it is not negative. */
#define ADDRESS_BITS (OUTHEAP_REGION_ADDRESS_BITS - 3)
_Static_assert(((uint64_t)OUTHEAP_LINEAR_TAKINGS - 1) << ADDRESS_BITS >> 62 == 0, "a token is a number of OCaml's");

static value token_of(value cell, uint32_t taking)
{
  return Val_long((uintptr_t)cell >> 3 | (uintptr_t)taking << ADDRESS_BITS);
}
static value cell_of(value token)
{
  return (value)(((uintptr_t)Long_val(token) & (((uintptr_t)1 << ADDRESS_BITS) - 1)) << 3);
}
static uint32_t taken_by(value token)
{
  return OUTHEAP_LINEAR_TAKEN + (uint32_t)((uintptr_t)Long_val(token) >> ADDRESS_BITS);
}

/* Takes a cell: its token, or a reason, negative. */
value outheap_linear_ml_take(value g, value v)
{
  uint32_t *state = outheap_linear_cell_state(group_of(g), v);
  if (state == NULL) return Val_long(-NOT_A_CELL);
  value token = token_of(v, outheap_linear_cell_taking(v));
  return change(state, OUTHEAP_LINEAR_LIVE, taken_by(token)) ? token : Val_long(-MOVED);
}

/* A cell that was taken just now, and not changed, is one that can be taken again. */
value outheap_linear_ml_untake(value token)
{
  __atomic_store_n(outheap_linear_cell_state_known(cell_of(token)), OUTHEAP_LINEAR_LIVE, __ATOMIC_RELEASE);
  return Val_unit;
}

/* Copies the block `v` into a cell that was taken: that, or a reason. */
value outheap_linear_ml_put(value g, value token, value v)
{
  value cell = cell_of(token);
  uint32_t *state = outheap_linear_cell_state(group_of(g), cell); /* NULL: the token came from another process */
  if (!change(state, taken_by(token), OUTHEAP_LINEAR_BUSY)) return Val_long(MOVED);
  intnat why = refusal(group_of(g), v);
  if (why == DONE && outheap_linear_cell_pool(cell)->shape != shape_of(v)) why = OTHER_SHAPE;
  if (why == DONE) fill(cell, v);
  /* Release: who takes the cell sees what is in it. */
  __atomic_store_n(state, why == DONE ? OUTHEAP_LINEAR_LIVE : taken_by(token), __ATOMIC_RELEASE);
  return why == DONE ? cell : Val_long(why);
}

value outheap_linear_ml_drop(value g, value token)
{
  value cell = cell_of(token);
  uint32_t *state = outheap_linear_cell_state(group_of(g), cell);
  if (!change(state, taken_by(token), OUTHEAP_LINEAR_BUSY)) return Val_long(MOVED);
  outheap_linear_cell_free(outheap_linear_cell_pool(cell), cell);
  return Val_long(DONE);
}
