/* SPDX-License-Identifier: MIT */
#include "hashcons_node.h"
#include <caml/address_class.h>
#include <caml/custom.h>
#include <caml/hash.h>
#include <outheap.h>
#include <region_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak outheap_classify

/* --- the hash ----------------------------------------------------------------------------------------------------- */

enum {
  MAX_NUMBERS = 64,       /* that count */
  MAX_BLOCKS = 128,       /* that are read */
  MAX_BEHIND = 6,         /* numbers that count behind what looks hash-consed */
  MAX_BLOCKS_BEHIND = 64, /* that are read there */
  MIN_ELEMENTS = 8,       /* a block with so many fields is read whole, however many numbers may still count */
  MAX_FORWARDS = 1000     /* a value may lead to itself */
};

/* Values that are to be read, in the order in which fields lead to them. */
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

/* The multiplication carries differences upwards, the shift brings them down. */
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

/* Is it an int64 or a nativeint? Their own function does not distinguish numbers whose two halves are equal. */
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

/* Of a long array those elements are read that lie at this distance from each other, the last one included. */
struct share { mlsize_t first, step; };
static inline struct share share(struct state const *s, mlsize_t n)
{
  mlsize_t most = s->numbers < MIN_ELEMENTS ? MIN_ELEMENTS : (mlsize_t)s->numbers;
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

/* Reads a value; what it leads to comes into the queue `next`. */
static void look(struct state *s, struct queue *next, value v)
{
  for (int i = 0; Is_block(v); i++) {
    if (!is_readable(v) || i == MAX_FORWARDS) return;
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

intnat outheap_hashcons_node_hash(value v)
{
  value now[MAX_BLOCKS], behind[MAX_BLOCKS_BEHIND];
  struct state s = { 0, MAX_NUMBERS, { now, 0, 0, MAX_BLOCKS }, { behind, 0, 0, MAX_BLOCKS_BEHIND } };
  add(&s.now, v);
  drain(&s, &s.now);
  s.numbers = MAX_BEHIND;
  drain(&s, &s.behind);
  return (intnat)(mix(s.hash, 0) >> 34);
}

/* --- the copy ----------------------------------------------------------------------------------------------------- */

/* A block to copy. */
struct item { value source; size_t offset; size_t parent, field; };

/* Blocks in the order in which they are reached, breadth first. `links` has, in that order, the number of the block
   that a field leads to, for each field that leads to one. What a small node needs is static. */
enum { STATIC_ROOM = 64, MAX_KEPT_ROOM = 1 << 12, MAX_SEARCHED = 8 };
static struct item first_items[STATIC_ROOM], *items = first_items;
static size_t first_links[STATIC_ROOM], *links = first_links;
static size_t item_count, item_room = STATIC_ROOM, link_count, link_room = STATIC_ROOM;
static size_t *table, table_room; /* 1 + numbers of items, by source; used if there are more than MAX_SEARCHED */

static struct { size_t parent, field; bool is_root; char const *kind; } culprit;

/* --- what becomes of a pointer ------------------------------------------------------------------------------------ */

enum fate { STAYS, COPIED, REFUSED };

static bool is_plain(struct custom_operations const *o)
{
  char const *i = o->identifier;
  return i[0] == '_' && (i[1] == 'i' || i[1] == 'j' || i[1] == 'n') && i[2] == 0;
}

static bool can_copy(value v)
{
  tag_t t = Tag_val(v);
  return t < OUTHEAP_REGION_SPECIAL || t == String_tag || t == Double_tag || t == Double_array_tag ||
         (t == Custom_tag && is_plain(Custom_ops_val(v)));
}

static enum fate fate(value v, char const **kind)
{
  if (outheap_hashcons_memory_has((uintptr_t)v)) {
    if (outheap_hashcons_memory_cell((uintptr_t)v) != NULL) return STAYS;
    *kind = "foreign pointer";
    return REFUSED;
  }
  enum outheap_kind where = outheap_classify == NULL ? OUTHEAP_UNKNOWN : outheap_classify((void const *)v);
  if (where == OUTHEAP_VALUES) {
    value block = v;
    if (Tag_val(v) == Infix_tag) block -= Infix_offset_val(v); /* one of several functions in a block */
    if (outheap_region_marker_is_static((uintptr_t)block, Hd_val(block))) return STAYS;
  }
  if (where != OUTHEAP_MAJOR && where != OUTHEAP_YOUNG && where != OUTHEAP_VALUES) {
    *kind = "foreign pointer";
    return REFUSED;
  }
  if (can_copy(v)) return COPIED;
  tag_t t = Tag_val(v);
  *kind = t == Custom_tag ? Custom_ops_val(v)->identifier
          : t == Closure_tag || t == Infix_tag ? "closure"
          : t == Object_tag ? "object or extension constructor"
          : t == Lazy_tag || t == Forcing_tag || t == Forward_tag ? "lazy"
          : t == Cont_tag ? "continuation" : "abstract";
  return REFUSED;
}

/* The node itself: it is copied from static data and from other cells, too, so that who keeps it keeps its own cell.
   Another value stays, and so do static functions and the like. */
static enum fate fate_of_node(value v, char const **kind)
{
  enum fate f = fate(v, kind);
  if (f != STAYS || !can_copy(v)) return f;
  if (!outheap_hashcons_memory_has((uintptr_t)v)) return COPIED;
  return v == (value)(outheap_hashcons_memory_cell((uintptr_t)v) + 1) ? STAYS : COPIED;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Doubles the room of an array. `few` is its first memory, which is never freed. Returns false if there is no memory;
   then nothing has changed. */
static bool grow(void **array, void const *few, size_t *room, size_t size)
{
  void *new = malloc(2 * *room * size);
  if (new == NULL) return false;
  memcpy(new, *array, *room * size);
  if (*array != few) free(*array);
  *array = new;
  *room *= 2;
  return true;
}

static size_t slot_of(value v) { return ((uintptr_t)v / 8 * 0x9e3779b97f4a7c15u >> 20) & (table_room - 1); }

static void enter(size_t item)
{
  size_t i = slot_of(items[item].source);
  while (table[i] != 0) i = (i + 1) & (table_room - 1);
  table[i] = item + 1;
}

/* Returns the number of a block that was reached before; SIZE_MAX: it was not. */
static size_t number_of(value v)
{
  if (item_count <= MAX_SEARCHED) {
    for (size_t i = 0; i < item_count; i++)
      if (items[i].source == v) return i;
    return SIZE_MAX;
  }
  for (size_t i = slot_of(v); table[i] != 0; i = (i + 1) & (table_room - 1))
    if (items[table[i] - 1].source == v) return table[i] - 1;
  return SIZE_MAX;
}

static size_t end_of(struct item const *i) { return i->offset + 1 + Wosize_val(i->source); }

static bool add_item(value v, size_t parent, size_t field)
{
  if (item_count == item_room && !grow((void **)&items, first_items, &item_room, sizeof *items)) return false;
  if (item_count >= MAX_SEARCHED && 2 * (item_count + 1) > table_room) {
    size_t room = table_room == 0 ? 64 : 2 * table_room, *new = calloc(room, sizeof *new);
    if (new == NULL) return false;
    free(table);
    table = new;
    table_room = room;
    for (size_t i = 0; i < item_count; i++) enter(i);
  }
  else if (item_count == MAX_SEARCHED) { /* what the table holds is of a former node */
    memset(table, 0, table_room * sizeof *table);
    for (size_t i = 0; i < item_count; i++) enter(i);
  }
  size_t offset = item_count == 0 ? (size_t)OUTHEAP_HASHCONS_REST : end_of(&items[item_count - 1]);
  items[item_count] = (struct item){ v, offset, parent, field };
  if (item_count++ >= MAX_SEARCHED) enter(item_count - 1);
  return true;
}

/* Decides what becomes of the pointer in a field of an item, or of the node, before there are any; and adds the block
   that it leads to. */
static enum outheap_hashcons_node_result visit_pointer(value v, size_t parent, size_t field)
{
  char const *kind = "";
  switch (item_count == 0 ? fate_of_node(v, &kind) : fate(v, &kind)) {
    case STAYS: return OUTHEAP_HASHCONS_NODE_FITS;
    case COPIED: break;
    default:
      culprit.parent = parent, culprit.field = field, culprit.kind = kind;
      culprit.is_root = item_count == 0;
      return OUTHEAP_HASHCONS_NODE_REFUSED;
  }
  if (Wosize_val(v) == 0) return OUTHEAP_HASHCONS_NODE_FITS; /* an empty array: a static one takes its place */
  size_t n = number_of(v);
  if (n == SIZE_MAX) {
    n = item_count;
    if (!add_item(v, parent, field)) return OUTHEAP_HASHCONS_NODE_NO_MEMORY;
  }
  if (link_count == link_room && !grow((void **)&links, first_links, &link_room, sizeof *links))
    return OUTHEAP_HASHCONS_NODE_NO_MEMORY;
  links[link_count++] = n;
  return OUTHEAP_HASHCONS_NODE_FITS;
}

enum outheap_hashcons_node_result outheap_hashcons_node_measure(value node, size_t *words)
{
  item_count = link_count = 0;
  *words = OUTHEAP_HASHCONS_REST;
  if (Is_long(node)) return OUTHEAP_HASHCONS_NODE_FITS;
  enum outheap_hashcons_node_result r = visit_pointer(node, 0, 0);
  for (size_t i = 0; r == OUTHEAP_HASHCONS_NODE_FITS && i < item_count; i++) {
    value v = items[i].source;
    mlsize_t n = Wosize_val(v);
    if (Tag_val(v) >= No_scan_tag) continue;
    for (mlsize_t f = 0; r == OUTHEAP_HASHCONS_NODE_FITS && f < n; f++)
      if (Is_block(Field(v, f))) r = visit_pointer(Field(v, f), i, f);
  }
  if (item_count != 0) *words = end_of(&items[item_count - 1]);
  return r;
}

/* --- filling ------------------------------------------------------------------------------------------------------ */

/* Returns what a pointer becomes in the copy. Takes the next link if it leads to a block that was copied. */
static value copied_value(outheap_hashcons_cell *c, value v, size_t *link)
{
  char const *kind;
  if (Is_long(v) || fate(v, &kind) == STAYS) return v;
  if (Wosize_val(v) == 0) return Atom(Tag_val(v));
  return (value)(c + items[links[(*link)++]].offset + 1);
}

void outheap_hashcons_node_fill(outheap_hashcons_cell *c, size_t room, value node, value hkey, value tag)
{
  size_t link = 0, end = OUTHEAP_HASHCONS_REST;
  c[0] = OUTHEAP_HASHCONS_HEADER;
  c[OUTHEAP_HASHCONS_HKEY] = (uint64_t)hkey;
  c[OUTHEAP_HASHCONS_TAG] = (uint64_t)tag;
  c[OUTHEAP_HASHCONS_NODE] = (uint64_t)(item_count != 0 ? (value)(c + items[links[link++]].offset + 1)
                                        : Is_block(node) && Wosize_val(node) == 0 ? Atom(Tag_val(node)) : node);
  for (size_t i = 0; i < item_count; i++) {
    value v = items[i].source;
    mlsize_t n = Wosize_val(v);
    uint64_t *to = c + items[i].offset;
    *to++ = outheap_region_block_header(n, Tag_val(v));
    if (Tag_val(v) >= No_scan_tag) memcpy(to, (void const *)v, n * OUTHEAP_HASHCONS_WORD);
    else
      for (mlsize_t f = 0; f < n; f++) to[f] = (uint64_t)copied_value(c, Field(v, f), &link);
    end = items[i].offset + 1 + n;
  }
  if (end < room) c[end] = 0;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

void outheap_hashcons_node_explain(char *text, size_t size)
{
  char path[256];
  size_t at = sizeof path - 1;
  path[at] = 0;
  if (culprit.is_root) {
    snprintf(text, size, "the node itself: %s", culprit.kind);
    return;
  }
  size_t field = culprit.field;
  for (size_t i = culprit.parent;; field = items[i].field, i = items[i].parent) {
    char part[32];
    size_t n = (size_t)snprintf(part, sizeof part, ".%zu", field);
    if (at < n + 3) {
      memcpy(path + at - 2, "..", 2); /* a path that is too long: its end */
      at -= 2;
      break;
    }
    memcpy(path + at - n, part, n);
    at -= n;
    if (i == 0) break;
  }
  snprintf(text, size, "%s: %s", path + at, culprit.kind);
}

void outheap_hashcons_node_done(void)
{
  if (item_room > MAX_KEPT_ROOM) {
    free(items);
    items = first_items, item_room = STATIC_ROOM;
  }
  if (link_room > MAX_KEPT_ROOM) {
    free(links);
    links = first_links, link_room = STATIC_ROOM;
  }
  if (table_room > 2 * MAX_KEPT_ROOM) {
    free(table);
    table = NULL, table_room = 0;
  }
}
