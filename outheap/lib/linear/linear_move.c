/* SPDX-License-Identifier: MIT */
#include "linear_move.h"
#include "region_runtime.h"

static value *field(value cell, int i) { return (value *)cell + i; }

/* What else lies in a field of a cell is no cell: Plain refuses them. */
static void move_text(value *place)
{
  value v = *place;
  if (Is_block(v) && outheap_region_marker_has_cells((uintptr_t)v)) *place = outheap_linear_cell_move(v);
}

static void move_chain(struct outheap_linear_owner *o)
{
  for (value *place = &o->root; Is_block(*place); place = field(*place, 1)) {
    value before = *place;
    *place = outheap_linear_cell_move(before);
    if (o->last == before) o->last = *place;
    move_text(field(*place, 0));
  }
}

/* Its depth is that of the C stack: the tree is balanced. */
static void move_tree(value *place)
{
  while (Is_block(*place)) {
    *place = outheap_linear_cell_move(*place);
    move_text(field(*place, 1));
    move_text(field(*place, 2));
    move_tree(field(*place, 0));
    place = field(*place, 3);
  }
}

/* The newer neighbour of a cell has it in field 5, the older one in field 4. */
static void move_bucket(struct outheap_linear_owner *o, value *place, bool bound)
{
  for (; Is_block(*place); place = field(*place, 2)) {
    value c = *place = outheap_linear_cell_move(*place);
    move_text(field(c, 0));
    move_text(field(c, 1));
    if (!bound) continue;
    *(Is_block(Field(c, 4)) ? field(Field(c, 4), 5) : &o->root) = c;
    *(Is_block(Field(c, 5)) ? field(Field(c, 5), 4) : &o->last) = c;
  }
}

intnat outheap_linear_move(struct outheap_linear_owner *o, enum outheap_linear_kind kind, intnat from)
{
  if (kind == OUTHEAP_LINEAR_CHAIN) move_chain(o);
  if (kind == OUTHEAP_LINEAR_TREE) move_tree(&o->root);
  if (kind != OUTHEAP_LINEAR_TABLE) return -1;
  struct outheap_linear_table *t = (struct outheap_linear_table *)o->more;
  struct outheap_linear_buckets *b = (struct outheap_linear_buckets *)t->buckets;
  intnat count = Long_val(b->count), end = from + OUTHEAP_LINEAR_SEGMENT;
  for (intnat i = from; i < count && i < end; i++)
    move_bucket(o, outheap_linear_bucket(b, i), t->most != Val_long(Max_long));
  return end < count ? end : -1;
}
