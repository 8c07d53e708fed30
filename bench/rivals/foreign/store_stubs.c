/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include <caml/alloc.h>
#include <caml/memory.h>

typedef struct entry {
  boxroot held;
  struct entry *next, *newer; /* in the bucket; in order of insertion */
  long key;
} entry;

static entry **buckets, *oldest, **newest = &oldest;
static long mask, size, most;

static entry **find(long key)
{
  entry **link = &buckets[key & mask];
  while (*link && (*link)->key != key) link = &(*link)->next;
  return link;
}

static void remove_oldest(void)
{
  entry *e = oldest;
  *find(e->key) = e->next;
  if (!(oldest = e->newer)) newest = &oldest;
  size--;
  boxroot_delete(e->held);
  free(e);
}

value store_create(value number)
{
  most = Long_val(number);
  for (mask = 1; mask < most;) mask *= 2;
  buckets = calloc(mask--, sizeof *buckets);
  if (!buckets || !boxroot_setup()) root_failure();
  return Val_unit;
}

value store_put(value key, value v)
{
  entry **link = find(Long_val(key)), *e = *link;
  if (e) {
    checked_modify(&e->held, v);
    return Val_unit;
  }
  if (!(e = *link = malloc(sizeof *e))) root_failure();
  *e = (entry){.held = checked_create(v), .key = Long_val(key)};
  *newest = e;
  newest = &e->newer;
  if (++size > most) remove_oldest();
  return Val_unit;
}

value store_get(value key)
{
  entry *e = *find(Long_val(key));
  if (!e) return Val_long(0);
  value some = caml_alloc_small(1, 0); /* may move what the root holds */
  Field(some, 0) = boxroot_get(e->held);
  return some;
}

value store_clear(value unit)
{
  while (size) remove_oldest();
  free(buckets);
  return unit;
}
