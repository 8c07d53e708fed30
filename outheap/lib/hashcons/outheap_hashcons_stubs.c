/* SPDX-License-Identifier: MIT */
/* The primitives of the module Outheap_hashcons. */
#include "hashcons_collect.h"
#include "hashcons_node.h"
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>

typedef struct outheap_hashcons_table table;
typedef outheap_hashcons_cell cell;

value outheap_hashcons_ml_start(value unit)
{
  static bool started, here;
  (void)unit;
  if (!started) {
    started = true;
    here = OUTHEAP_REGION_OCAML5 && outheap_marker_can_tell != NULL && outheap_marker_claim_cells != NULL &&
           outheap_marker_can_tell();
    outheap_hashcons_lock_start();
    if (here) outheap_hashcons_collect_start();
  }
  return Val_bool(here);
}

intnat outheap_hashcons_ml_hash(value v) { return outheap_hashcons_node_hash(v); }
value outheap_hashcons_ml_hash_byte(value v) { return Val_long(outheap_hashcons_node_hash(v)); }

/* --- tables off the heap ---------------------------------------------------------------------------------------------
   A custom block holds a pointer to a table, which is used with the lock only. */

enum { MAX_CELLS = 1 << 20 }; /* cells for which a new table has room */

static table **table_of(value t) { return (table **)Data_custom_val(t); }

static void drop(value t)
{
  if (*table_of(t) == NULL) return;
  outheap_hashcons_lock_take();
  outheap_hashcons_table_abandon(*table_of(t));
  outheap_hashcons_lock_give();
}

static struct custom_operations operations = {
  .identifier = "outheap.hashcons.table", .finalize = drop, .compare = custom_compare_default,
  .hash = custom_hash_default, .serialize = custom_serialize_default, .deserialize = custom_deserialize_default,
  .compare_ext = custom_compare_ext_default, .fixed_length = custom_fixed_length_default,
};

value outheap_hashcons_ml_create(value size)
{
  size_t n = Long_val(size) < 0 ? 0 : Long_val(size) > MAX_CELLS ? MAX_CELLS : (size_t)Long_val(size);
  value v = caml_alloc_custom_mem(&operations, sizeof(table *), n * 16);
  *table_of(v) = NULL;
  outheap_hashcons_lock_take();
  table *t = outheap_hashcons_table_new(n);
  outheap_hashcons_lock_give();
  if (t == NULL) caml_raise_out_of_memory();
  *table_of(v) = t;
  return v;
}

value outheap_hashcons_ml_clear(value t)
{
  outheap_hashcons_lock_take();
  table *new = outheap_hashcons_table_new(0), *old = *table_of(t);
  if (new != NULL) {
    *table_of(t) = new;
    outheap_hashcons_table_abandon(old);
  }
  outheap_hashcons_lock_give();
  if (new == NULL) caml_raise_out_of_memory();
  return Val_unit;
}

/* The three functions below neither allocate in the heap, poll nor raise. */

/* Returns the first cell with that hash, or 0. */
value outheap_hashcons_ml_find(value t, intnat hkey)
{
  outheap_hashcons_lock_take();
  cell *c = outheap_hashcons_table_find(*table_of(t), Val_long(hkey));
  if (c != NULL) outheap_hashcons_collect_touch(c);
  outheap_hashcons_lock_give();
  return c == NULL ? Val_int(0) : outheap_hashcons_cell_value(c);
}

enum { RETRY, NO_MEMORY, REFUSED }; /* what `insert` returns instead of a cell: Outheap_hashcons.why */

static value insert(table *t, intnat hkey, value node)
{
  static intnat last_tag;
  size_t words;
  switch (outheap_hashcons_node_measure(node, &words)) {
    case OUTHEAP_HASHCONS_NODE_NO_MEMORY: return Val_int(NO_MEMORY);
    case OUTHEAP_HASHCONS_NODE_REFUSED: return Val_int(REFUSED);
    default: break;
  }
  if (!outheap_hashcons_table_reserve(t)) return Val_int(NO_MEMORY);
  cell *c = outheap_hashcons_memory_alloc(words);
  if (c == NULL) return Val_int(NO_MEMORY);
  size_t room = outheap_hashcons_memory_page((uintptr_t)c)->words;
  outheap_hashcons_node_fill(c, room, node, Val_long(hkey), Val_long(++last_tag));
  outheap_hashcons_collect_allocated(room);
  outheap_hashcons_table_add(t, c);
  outheap_hashcons_collect_touch(c);
  return outheap_hashcons_cell_value(c);
}

/* Makes a cell. Returns RETRY if the table has one with that hash. */
value outheap_hashcons_ml_insert(value v, intnat hkey, value node)
{
  outheap_hashcons_lock_take();
  table *t = *table_of(v);
  value r = outheap_hashcons_table_find(t, Val_long(hkey)) != NULL ? Val_int(RETRY) : insert(t, hkey, node);
  outheap_hashcons_node_done();
  outheap_hashcons_lock_give();
  return r;
}

/* The fields of Outheap_hashcons.Off_heap.search, which nobody else has; they are immediates. */
enum { EPOCH, AT, NEWER, SINCE, IS_NEW };

/* Returns the next cell of a search, or, if there is none, a new one. */
value outheap_hashcons_ml_next(value v, intnat hkey, value node, value search, value last)
{
  struct outheap_hashcons_table_search s = {
    Long_val(Field(search, EPOCH)), (size_t)Long_val(Field(search, AT)), Field(search, NEWER), Field(search, SINCE)
  };
  outheap_hashcons_lock_take();
  table *t = *table_of(v);
  cell *c = outheap_hashcons_table_next(t, Val_long(hkey), &s, (cell *)last - 1);
  value r;
  if (c != NULL) {
    outheap_hashcons_collect_touch(c);
    r = outheap_hashcons_cell_value(c);
  }
  else {
    r = insert(t, hkey, node);
    outheap_hashcons_node_done();
  }
  outheap_hashcons_lock_give();
  Field(search, EPOCH) = Val_long(s.epoch);
  Field(search, AT) = Val_long(s.at);
  Field(search, NEWER) = s.newer;
  Field(search, SINCE) = s.since;
  Field(search, IS_NEW) = Val_bool(c == NULL);
  return r;
}

#define BYTE(f, ...) { return f(__VA_ARGS__); }
value outheap_hashcons_ml_find_byte(value t, value h) BYTE(outheap_hashcons_ml_find, t, Long_val(h))
value outheap_hashcons_ml_insert_byte(value t, value h, value node)
  BYTE(outheap_hashcons_ml_insert, t, Long_val(h), node)
value outheap_hashcons_ml_next_byte(value t, value h, value node, value search, value last)
  BYTE(outheap_hashcons_ml_next, t, Long_val(h), node, search, last)

/* Says why a node is refused; the empty string: it is not. */
value outheap_hashcons_ml_explain(value node)
{
  char text[320] = "";
  size_t words;
  outheap_hashcons_lock_take();
  if (outheap_hashcons_node_measure(node, &words) == OUTHEAP_HASHCONS_NODE_REFUSED)
    outheap_hashcons_node_explain(text, sizeof text);
  outheap_hashcons_node_done();
  outheap_hashcons_lock_give();
  return caml_copy_string(text);
}

value outheap_hashcons_ml_pace(value cells)
{
  outheap_hashcons_collect_pace((size_t)Long_val(cells));
  return Val_unit;
}

value outheap_hashcons_ml_finish(value unit)
{
  (void)outheap_hashcons_collect_finish();
  return unit;
}

value outheap_hashcons_ml_force(value on)
{
  outheap_hashcons_collect_force(Bool_val(on));
  return Val_unit;
}

/* Makes an array of the values of all cells, which may end with zeroes. */
value outheap_hashcons_ml_elements(value v)
{
  CAMLparam1(v);
  CAMLlocal1(a);
  for (size_t room = 0;;) {
    a = caml_alloc(room, 0);
    size_t n = 0;
    outheap_hashcons_lock_take();
    table *t = *table_of(v);
    bool fits = t->used <= room;
    if (!fits) room = t->used + t->used / 16;
    for (size_t i = 0; fits && i >> t->log == 0; i++) {
      if (!outheap_hashcons_table_holds(t->slots[i])) continue;
      cell *c = outheap_hashcons_table_cell_of(t->slots[i]);
      if (outheap_hashcons_mark_is_dead(c)) continue;
      outheap_hashcons_collect_touch(c);
      caml_initialize(&Field(a, n), outheap_hashcons_cell_value(c));
      n++;
    }
    outheap_hashcons_lock_give();
    if (fits) CAMLreturn(a);
  }
}

/* Returns the numbers of slots, and of slots with cells. */
value outheap_hashcons_ml_sizes(value v)
{
  outheap_hashcons_lock_take();
  table *t = *table_of(v);
  size_t slots = (size_t)1 << t->log, used = t->used;
  outheap_hashcons_lock_give();
  value r = caml_alloc_small(2, 0);
  Field(r, 0) = Val_long(slots);
  Field(r, 1) = Val_long(used);
  return r;
}

/* The fields of Outheap_hashcons.memory. */
value outheap_hashcons_ml_memory(value unit)
{
  (void)unit;
  outheap_hashcons_lock_take();
  size_t f[] = { outheap_hashcons_memory.cells, outheap_hashcons_memory.words * OUTHEAP_HASHCONS_WORD,
                 outheap_hashcons_memory.freed, outheap_hashcons_collect.collections, outheap_hashcons_collect.late };
  outheap_hashcons_lock_give();
  value r = caml_alloc_small(5, 0);
  for (int i = 0; i < 5; i++) Field(r, i) = Val_long(f[i]);
  return r;
}

value outheap_hashcons_ml_is_cell(value v)
{
  return Val_bool(Is_block(v) && outheap_hashcons_memory_has((uintptr_t)v));
}

/* Returns the hash of the cell whose node this is, or -1. The caller holds the node, so its cell stays. */
intnat outheap_hashcons_ml_hkey_of_node(value node)
{
  if (Is_long(node) || !outheap_hashcons_memory_has((uintptr_t)node)) return -1;
  outheap_hashcons_lock_take();
  cell *c = outheap_hashcons_memory_cell((uintptr_t)node);
  intnat hkey = c != NULL && (value)c[OUTHEAP_HASHCONS_NODE] == node ? Long_val((value)c[OUTHEAP_HASHCONS_HKEY]) : -1;
  outheap_hashcons_lock_give();
  return hkey;
}
value outheap_hashcons_ml_hkey_of_node_byte(value node) { return Val_long(outheap_hashcons_ml_hkey_of_node(node)); }

/* --- tables in the heap ------------------------------------------------------------------------------------------- */

extern value caml_weak_set(value, value, value);

/* The fields of Outheap_hashcons.In_heap.t and .state. */
enum { STATE, USED, STAMP, WEAK = 0, HASHES };

static intnat last_tag_in_heap; /* written under the lock */

/* acquire: whoever reads a tag sees the values up to it in their tables */
intnat outheap_hashcons_ml_last_tag(value unit)
{
  (void)unit;
  return __atomic_load_n(&last_tag_in_heap, __ATOMIC_ACQUIRE);
}
value outheap_hashcons_ml_last_tag_byte(value unit) { return Val_long(outheap_hashcons_ml_last_tag(unit)); }

/* Takes the lock. Returns false, without the lock, if the table has changed. */
static bool begin_change(value t, value stamp)
{
  outheap_hashcons_lock_take();
  if (Field(Field(t, STAMP), 0) == stamp) return true;
  outheap_hashcons_lock_give();
  return false;
}

static value end_change(value t, value stamp)
{
  /* release: whoever sees this stamp sees the change */
  __atomic_store_n(&Field(Field(t, STAMP), 0), Val_long(Long_val(stamp) + 1), __ATOMIC_RELEASE);
  outheap_hashcons_lock_give();
  return Val_true;
}

value outheap_hashcons_ml_put(value t, value stamp, value at, value hkey, value some)
{
  if (!begin_change(t, stamp)) return Val_false;
  value volatile *hash = &Field(Field(Field(t, STATE), HASHES), Long_val(at));
  if (*hash == Val_long(-1)) Field(t, USED) += 2;
  intnat tag = last_tag_in_heap + 1;
  Field(Field(some, 0), OUTHEAP_HASHCONS_TAG - 1) = Val_long(tag); /* nobody else has it yet */
  (void)caml_weak_set(Field(Field(t, STATE), WEAK), at, some);
  __atomic_store_n(hash, hkey, __ATOMIC_RELEASE); /* whoever sees it finds the value */
  __atomic_store_n(&last_tag_in_heap, tag, __ATOMIC_RELEASE); /* as well */
  return end_change(t, stamp);
}

value outheap_hashcons_ml_replace(value t, value stamp, value state, value used)
{
  if (!begin_change(t, stamp)) return Val_false;
  Field(t, USED) = used;
  caml_modify(&Field(t, STATE), state);
  return end_change(t, stamp);
}
