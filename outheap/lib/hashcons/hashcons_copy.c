/* SPDX-License-Identifier: MIT */
#include "hashcons_copy.h"
#include <caml/custom.h>
#include <outheap.h>
#include "region_addresses.h"
#include <stdio.h>
#include <stdlib.h>

#pragma weak outheap_classify

/* A block to copy. */
struct item { value source; size_t offset; size_t parent, field; };

/* Blocks in the order in which they are met, breadth first; links: for each field that leads to one of them, in that
   order, which. What a small node needs is static. */
enum { FEW = 64, KEEP = 1 << 12, SEARCHED = 8 };
static struct item first_items[FEW], *items = first_items;
static size_t first_links[FEW], *links = first_links;
static size_t item_count, item_room = FEW, link_count, link_room = FEW;
static size_t *table, table_room; /* 1 + numbers of items, by source; used once there are more than SEARCHED */

static struct { size_t parent, field; bool is_root; char const *kind; } culprit;

/* --- what becomes of a pointer ------------------------------------------------------------------------------------ */

enum fate { STAYS, COPIED, REFUSED };

static bool is_plain(struct custom_operations const *o)
{
  char const *i = o->identifier;
  return i[0] == '_' && (i[1] == 'i' || i[1] == 'j' || i[1] == 'n') && i[2] == 0;
}

static enum fate fate(value v, char const **kind)
{
  if (outheap_hashcons_memory_has((uintptr_t)v)) {
    if (outheap_hashcons_memory_cell((uintptr_t)v) != NULL) return STAYS;
    *kind = "foreign pointer";
    return REFUSED;
  }
  enum outheap_kind where = outheap_classify == NULL ? OUTHEAP_UNKNOWN : outheap_classify((void const *)v);
  if (where == OUTHEAP_VALUES && !outheap_region_addresses_has((uintptr_t)v)) return STAYS;
  if (where != OUTHEAP_MAJOR && where != OUTHEAP_YOUNG && where != OUTHEAP_VALUES) {
    *kind = "foreign pointer";
    return REFUSED;
  }
  tag_t t = Tag_val(v);
  if (t < OUTHEAP_REGION_SPECIAL || t == String_tag || t == Double_tag || t == Double_array_tag) return COPIED;
  if (t == Custom_tag && is_plain(Custom_ops_val(v))) return COPIED;
  *kind = t == Custom_tag ? Custom_ops_val(v)->identifier
          : t == Closure_tag || t == Infix_tag ? "closure"
          : t == Object_tag ? "object or extension constructor"
          : t == Lazy_tag || t == Forcing_tag || t == Forward_tag ? "lazy"
          : t == Cont_tag ? "continuation" : "abstract";
  return REFUSED;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Twice the room. `few`: what is never freed. False: no memory, and nothing has changed. */
static bool more(void **array, void const *few, size_t *room, size_t size)
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

/* The number of a block that was met before; SIZE_MAX: it was not. */
static size_t number_of(value v)
{
  if (item_count <= SEARCHED) {
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
  if (item_count == item_room && !more((void **)&items, first_items, &item_room, sizeof *items)) return false;
  if (item_count >= SEARCHED && 2 * (item_count + 1) > table_room) {
    size_t room = table_room == 0 ? 64 : 2 * table_room, *new = calloc(room, sizeof *new);
    if (new == NULL) return false;
    free(table);
    table = new;
    table_room = room;
    for (size_t i = 0; i < item_count; i++) enter(i);
  }
  else if (item_count == SEARCHED) { /* the table is that of a former node */
    memset(table, 0, table_room * sizeof *table);
    for (size_t i = 0; i < item_count; i++) enter(i);
  }
  size_t offset = item_count == 0 ? (size_t)OUTHEAP_HASHCONS_REST : end_of(&items[item_count - 1]);
  items[item_count] = (struct item){ v, offset, parent, field };
  if (item_count++ >= SEARCHED) enter(item_count - 1);
  return true;
}

static enum outheap_hashcons_copy_result meet(value v, size_t parent, size_t field)
{
  char const *kind = "";
  switch (fate(v, &kind)) {
    case STAYS: return OUTHEAP_HASHCONS_COPY_FITS;
    case COPIED: break;
    default:
      culprit.parent = parent, culprit.field = field, culprit.kind = kind;
      culprit.is_root = item_count == 0;
      return OUTHEAP_HASHCONS_COPY_REFUSED;
  }
  if (Wosize_val(v) == 0) return OUTHEAP_HASHCONS_COPY_FITS; /* an empty array: there is a static one */
  size_t n = number_of(v);
  if (n == SIZE_MAX) {
    n = item_count;
    if (!add_item(v, parent, field)) return OUTHEAP_HASHCONS_COPY_NO_MEMORY;
  }
  if (link_count == link_room && !more((void **)&links, first_links, &link_room, sizeof *links))
    return OUTHEAP_HASHCONS_COPY_NO_MEMORY;
  links[link_count++] = n;
  return OUTHEAP_HASHCONS_COPY_FITS;
}

enum outheap_hashcons_copy_result outheap_hashcons_copy_measure(value node, size_t *words)
{
  item_count = link_count = 0;
  *words = OUTHEAP_HASHCONS_REST;
  if (Is_long(node)) return OUTHEAP_HASHCONS_COPY_FITS;
  enum outheap_hashcons_copy_result r = meet(node, 0, 0);
  for (size_t i = 0; r == OUTHEAP_HASHCONS_COPY_FITS && i < item_count; i++) {
    value v = items[i].source;
    mlsize_t n = Wosize_val(v);
    if (Tag_val(v) >= No_scan_tag) continue;
    for (mlsize_t f = 0; r == OUTHEAP_HASHCONS_COPY_FITS && f < n; f++)
      if (Is_block(Field(v, f))) r = meet(Field(v, f), i, f);
  }
  if (item_count != 0) *words = end_of(&items[item_count - 1]);
  return r;
}

/* --- filling ------------------------------------------------------------------------------------------------------ */

/* Where a pointer leads in the copy; takes the next link if it is to a block that was copied. */
static value moved(outheap_hashcons_cell *c, value v, size_t *link)
{
  char const *kind;
  if (Is_long(v) || fate(v, &kind) == STAYS) return v;
  if (Wosize_val(v) == 0) return Atom(Tag_val(v));
  return (value)(c + items[links[(*link)++]].offset + 1);
}

void outheap_hashcons_copy_fill(outheap_hashcons_cell *c, size_t room, value node, value hkey, value tag)
{
  size_t link = 0, end = OUTHEAP_HASHCONS_REST;
  c[0] = OUTHEAP_HASHCONS_HEADER;
  c[OUTHEAP_HASHCONS_HKEY] = (uint64_t)hkey;
  c[OUTHEAP_HASHCONS_TAG] = (uint64_t)tag;
  c[OUTHEAP_HASHCONS_NODE] = (uint64_t)moved(c, node, &link);
  for (size_t i = 0; i < item_count; i++) {
    value v = items[i].source;
    mlsize_t n = Wosize_val(v);
    uint64_t *to = c + items[i].offset;
    *to++ = outheap_region_block_header(n, Tag_val(v));
    if (Tag_val(v) >= No_scan_tag) memcpy(to, (void const *)v, n * OUTHEAP_HASHCONS_WORD);
    else
      for (mlsize_t f = 0; f < n; f++) to[f] = (uint64_t)moved(c, Field(v, f), &link);
    end = items[i].offset + 1 + n;
  }
  if (end < room) c[end] = 0;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

void outheap_hashcons_copy_explain(char *text, size_t size)
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
      memcpy(path + at - 2, "..", 2); /* too long: its end */
      at -= 2;
      break;
    }
    memcpy(path + at - n, part, n);
    at -= n;
    if (i == 0) break;
  }
  snprintf(text, size, "%s: %s", path + at, culprit.kind);
}

void outheap_hashcons_copy_done(void)
{
  if (item_room > KEEP) {
    free(items);
    items = first_items, item_room = FEW;
  }
  if (link_room > KEEP) {
    free(links);
    links = first_links, link_room = FEW;
  }
  if (table_room > 2 * KEEP) {
    free(table);
    table = NULL, table_room = 0;
  }
}
