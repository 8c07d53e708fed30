/* SPDX-License-Identifier: MIT */
/* The primitives of the module Outheap_linear that are about pools, texts and slots. Those for which it says
   [@@noalloc] there do not run the collector. */
#include "linear_pool.h"
#include "linear_slots.h"
#include "linear_text.h"
#include <caml/alloc.h>
#include <caml/fail.h>

typedef struct outheap_linear_pool pool;

static pool *pool_of(value v) { return outheap_linear_address(v); }

value outheap_linear_ml_start(value unit)
{
  static bool started;
  if (!started) outheap_linear_lock_start();
  started = true;
  return unit;
}

/* `within`: the links of free cells lie in the cells. */
value outheap_linear_ml_pool(value fields, value within)
{
  pool *p = outheap_linear_pool_new((uint32_t)Long_val(fields),
                                    Bool_val(within) ? OUTHEAP_LINEAR_WITHIN : OUTHEAP_LINEAR_BESIDE);
  if (p == NULL) caml_raise_out_of_memory();
  return outheap_linear_immediate(p);
}

/* `shape`: fields * 256 + tag. Returns 0 (an immediate) if there is no memory. */
value outheap_linear_ml_new(value p, value shape)
{
  intnat s = Long_val(shape);
  value cell = outheap_linear_cell_new(pool_of(p), (mlsize_t)s >> 8, (tag_t)(s & 255), true);
  return cell == 0 ? Val_long(0) : cell;
}

value outheap_linear_ml_free(value p, value cell)
{
  outheap_linear_cell_free(pool_of(p), cell);
  return Val_unit;
}

value outheap_linear_ml_free_chain(value p, value cell, value link)
{
  outheap_linear_cell_free_chain(pool_of(p), cell, (mlsize_t)Long_val(link));
  return Val_unit;
}

value outheap_linear_ml_free_tree(value p, value cell, value left, value right)
{
  outheap_linear_cell_free_tree(pool_of(p), cell, (mlsize_t)Long_val(left), (mlsize_t)Long_val(right));
  return Val_unit;
}

/* Reverses the chain `l` in front of `acc`. */
value outheap_linear_ml_reverse(value l, value acc)
{
  while (Is_block(l)) {
    value next = Field(l, 1);
    Field(l, 1) = acc;
    acc = l;
    l = next;
  }
  return acc;
}

/* The last cell of a chain that has one. */
value outheap_linear_ml_last(value l)
{
  while (Is_block(Field(l, 1))) l = Field(l, 1);
  return l;
}

/* The number of cells of a tree; some number beyond `most` if there are more. */
static intnat size_of(value tree, intnat most)
{
  intnat n = 0;
  for (; Is_block(tree) && n <= most; tree = Field(tree, 3)) n += 1 + size_of(Field(tree, 0), most - n);
  return n;
}

value outheap_linear_ml_tree_size(value tree) { return Val_long(size_of(tree, Max_long)); }

/* That of `l`, of `whole` in `l` and `r`, in time for the smaller one. */
value outheap_linear_ml_tree_size_of_first(value l, value r, value whole)
{
  for (intnat most = 64;; most *= 2) {
    intnat n = size_of(l, most);
    if (n <= most) return Val_long(n);
    n = size_of(r, most);
    if (n <= most) return Val_long(Long_val(whole) - n);
  }
}

/* Contents of a chain, one after the other, to and from an array, of what is not in the heap: to one as long as the
   chain, and the first `count` from one. */
value outheap_linear_ml_read_out(value l, value array)
{
  for (mlsize_t i = 0; i < Wosize_val(array); i++, l = Field(l, 1)) Field(array, i) = Field(l, 0);
  return Val_unit;
}

value outheap_linear_ml_write_back(value l, value array, value count)
{
  for (intnat i = 0; i < Long_val(count); i++, l = Field(l, 1)) Field(l, 0) = Field(array, i);
  return Val_unit;
}

value outheap_linear_ml_used(value p) { return Val_long(outheap_linear_pool_used(pool_of(p))); }
value outheap_linear_ml_bytes(value p) { return Val_long(outheap_linear_pool_bytes(pool_of(p))); }
value outheap_linear_ml_thin(value p) { return Val_bool(outheap_linear_pool_thin(pool_of(p))); }
value outheap_linear_ml_trim(value p) { return Val_long(outheap_linear_pool_trim(pool_of(p))); }

value outheap_linear_ml_poison(value on)
{
  outheap_linear_poison_set(Bool_val(on));
  return Val_unit;
}

value outheap_linear_ml_check(value p)
{
  char const *wrong = outheap_linear_pool_check(pool_of(p));
  return caml_copy_string(wrong == NULL ? "" : wrong);
}

value outheap_linear_ml_texts(value unit)
{
  (void)unit;
  return outheap_linear_immediate(&outheap_linear_texts);
}

/* Returns 0 (an immediate) if there is no memory. */
value outheap_linear_ml_text_new(value string)
{
  value cell = outheap_linear_text_new(string);
  return cell == 0 ? Val_long(0) : cell;
}

value outheap_linear_ml_text_free(value cell)
{
  outheap_linear_cell_free(outheap_linear_cell_pool(cell), cell);
  return Val_unit;
}

/* A copy in the heap. The cell does not move, nor is it freed meanwhile: its owner is in use. */
value outheap_linear_ml_text_copy(value cell)
{
  return caml_alloc_initialized_string(caml_string_length(cell), (char const *)cell);
}

value outheap_linear_ml_slots(value unit)
{
  struct outheap_linear_slots *s = outheap_linear_slots_new();
  (void)unit;
  if (s == NULL) caml_raise_out_of_memory();
  return outheap_linear_immediate(s);
}

value outheap_linear_ml_slot_take(value s)
{
  return Val_long(outheap_linear_slots_take(outheap_linear_address(s)));
}

value outheap_linear_ml_slot_give(value s, value number)
{
  outheap_linear_slots_give(outheap_linear_address(s), (uint32_t)Long_val(number));
  return Val_unit;
}
