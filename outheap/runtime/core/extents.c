/* SPDX-License-Identifier: MIT */
#include "extents.h"
#include "base.h"
#include "os.h"

typedef struct oh_extents_node node;
typedef struct oh_extents set;
struct oh_extents_batch { struct oh_extents_batch *next; size_t left; node nodes[]; };

/* --- nodes ---------------------------------------------------------------------------------------------------------
   */

bool oh_extents_supply(set *s, size_t n)
{
  size_t spare = s->nodes - s->promised;
  if (n <= spare) return true;
  n -= spare;
  if (n < 64) n = 64;
  if (n > SIZE_MAX / 4 / sizeof(node)) return false;
  struct oh_extents_batch *b = oh_metadata_alloc(sizeof *b + n * sizeof(node));
  if (b == NULL) return false;
  b->left = n;
  b->next = s->batches;
  s->batches = b;
  s->nodes += n;
  return true;
}

void oh_extents_promise(set *s, size_t n)
{
  OH_ASSERT(n <= s->nodes - s->promised);
  s->promised += n;
}

static node *new_node(set *s, uintptr_t base, size_t bytes)
{
  node *e = s->unused;
  if (e != NULL) s->unused = e->low[OH_EXTENTS_BY_ADDRESS];
  else {
    while (s->batches != NULL && s->batches->left == 0) s->batches = s->batches->next;
    if (s->batches == NULL) oh_log_abort("more extents than promised");
    e = &s->batches->nodes[--s->batches->left];
  }
  uint64_t x = s->seed += 0x9e3779b97f4a7c15; /* S. Vigna's splitmix64 */
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  *e = (node){ .base = base, .bytes = bytes, .rank = x ^ x >> 31 };
  return e;
}

static void free_node(set *s, node *e)
{
  e->low[OH_EXTENTS_BY_ADDRESS] = s->unused;
  s->unused = e;
}

/* --- trees ---------------------------------------------------------------------------------------------------------
   */

static bool less(int order, node const *a, node const *b)
{
  if (order == OH_EXTENTS_BY_SIZE && a->bytes != b->bytes) return a->bytes < b->bytes;
  return a->base < b->base;
}

static void insert(set *s, int order, node *e)
{
  node **at = &s->root[order];
  while (*at != NULL && (*at)->rank >= e->rank) at = less(order, e, *at) ? &(*at)->low[order] : &(*at)->high[order];
  /* The tree at this place is split in two: what is less than e, and what is more. */
  node *rest = *at, **low = &e->low[order], **high = &e->high[order];
  *at = e;
  while (rest != NULL) {
    if (less(order, rest, e)) {
      *low = rest;
      low = &rest->high[order];
      rest = *low;
    }
    else {
      *high = rest;
      high = &rest->low[order];
      rest = *high;
    }
  }
  *low = *high = NULL;
}

static void extract(set *s, int order, node *e)
{
  node **at = &s->root[order];
  while (*at != e) at = less(order, e, *at) ? &(*at)->low[order] : &(*at)->high[order];
  node *low = e->low[order], *high = e->high[order];
  while (low != NULL && high != NULL) {
    if (low->rank >= high->rank) {
      *at = low;
      at = &low->high[order];
      low = *at;
    }
    else {
      *at = high;
      at = &high->low[order];
      high = *at;
    }
  }
  *at = low != NULL ? low : high;
}

static void add(set *s, node *e)
{
  insert(s, OH_EXTENTS_BY_ADDRESS, e);
  insert(s, OH_EXTENTS_BY_SIZE, e);
  s->count++;
  s->bytes += e->bytes;
}

static void drop(set *s, node *e)
{
  extract(s, OH_EXTENTS_BY_ADDRESS, e);
  extract(s, OH_EXTENTS_BY_SIZE, e);
  s->count--;
  s->bytes -= e->bytes;
}

/* --- the set -------------------------------------------------------------------------------------------------------
   */

node *oh_extents_below(set const *s, uintptr_t address)
{
  node *found = NULL;
  for (node *e = s->root[OH_EXTENTS_BY_ADDRESS]; e != NULL;) {
    if (e->base <= address) {
      found = e;
      e = e->high[OH_EXTENTS_BY_ADDRESS];
    }
    else e = e->low[OH_EXTENTS_BY_ADDRESS];
  }
  return found;
}

node *oh_extents_above(set const *s, uintptr_t address)
{
  node *found = NULL;
  for (node *e = s->root[OH_EXTENTS_BY_ADDRESS]; e != NULL;) {
    if (e->base >= address) {
      found = e;
      e = e->low[OH_EXTENTS_BY_ADDRESS];
    }
    else e = e->high[OH_EXTENTS_BY_ADDRESS];
  }
  return found;
}

node *oh_extents_best(set const *s, size_t bytes)
{
  node *found = NULL;
  for (node *e = s->root[OH_EXTENTS_BY_SIZE]; e != NULL;) {
    if (e->bytes >= bytes) {
      found = e;
      e = e->low[OH_EXTENTS_BY_SIZE];
    }
    else e = e->high[OH_EXTENTS_BY_SIZE];
  }
  return found;
}

bool oh_extents_overlap(set const *s, uintptr_t base, size_t bytes)
{
  node *e = oh_extents_below(s, base + bytes - 1);
  return e != NULL && oh_extents_end(e) > base;
}

node *oh_extents_add(set *s, uintptr_t base, size_t bytes)
{
  OH_ASSERT(bytes != 0 && base + bytes > base && !oh_extents_overlap(s, base, bytes));
  node *before = base == 0 ? NULL : oh_extents_below(s, base - 1), *after = oh_extents_above(s, base + bytes),
       *e = NULL;
  if (before != NULL && oh_extents_end(before) == base) {
    drop(s, e = before);
    e->bytes += bytes;
  }
  if (after != NULL && after->base == base + bytes) {
    drop(s, after);
    if (e != NULL) {
      e->bytes += after->bytes;
      free_node(s, after);
    }
    else {
      e = after;
      e->base = base;
      e->bytes += bytes;
    }
  }
  if (e == NULL) e = new_node(s, base, bytes);
  add(s, e);
  OH_ASSERT(s->count <= s->promised);
  return e;
}

void oh_extents_remove(set *s, node *e, uintptr_t base, size_t bytes)
{
  uintptr_t low = e->base, high = oh_extents_end(e), end = base + bytes;
  OH_ASSERT(bytes != 0 && low <= base && base < end && end <= high);
  drop(s, e);
  if (low < base) {
    e->bytes = base - low;
    add(s, e);
    e = NULL;
  }
  if (end < high) {
    if (e == NULL) e = new_node(s, end, high - end);
    e->base = end;
    e->bytes = high - end;
    add(s, e);
    e = NULL;
  }
  if (e != NULL) free_node(s, e);
}

/* --- checks --------------------------------------------------------------------------------------------------------
   */

struct account { node const *last; size_t count, bytes; };

static void visit(node const *e, int order, struct account *a)
{
  if (e == NULL) return;
  node const *low = e->low[order], *high = e->high[order];
  OH_CHECK((low == NULL || low->rank <= e->rank) && (high == NULL || high->rank <= e->rank));
  visit(low, order, a);
  OH_CHECK(e->bytes != 0);
  if (a->last != NULL) {
    OH_CHECK(less(order, a->last, e));
    if (order == OH_EXTENTS_BY_ADDRESS) OH_CHECK(oh_extents_end(a->last) < e->base);
  }
  a->last = e;
  a->count++;
  a->bytes += e->bytes;
  visit(high, order, a);
}

void oh_extents_validate(set const *s)
{
  for (int order = 0; order < OH_EXTENTS_ORDERS; order++) {
    struct account a = { NULL, 0, 0 };
    visit(s->root[order], order, &a);
    OH_CHECK(a.count == s->count && a.bytes == s->bytes);
  }
  OH_CHECK(s->count <= s->promised && s->promised <= s->nodes);
}
