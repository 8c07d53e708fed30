/* SPDX-License-Identifier: MIT */
/* Boxroot's roots that hold pointers to a region, and to memory without headers. */
#include <boxroot.h>
#include <caml/alloc.h>
#include <caml/memory.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MANY = 300000 };
static boxroot roots[MANY];

value region_roots_hold(value v)
{
  for (int i = 0; i < MANY; i++) {
    roots[i] = boxroot_create(v);
    if (roots[i] == NULL) abort();
  }
  return Val_unit;
}

value region_roots_get(value unit)
{
  (void)unit;
  return boxroot_get(roots[MANY / 2]);
}

value region_roots_drop(value unit)
{
  (void)unit;
  for (int i = 0; i < MANY; i++) boxroot_delete(roots[i]);
  return Val_unit;
}

/* Pointers into memory that cannot be read. */
value region_roots_hold_foreign(value unit)
{
  static char *page;
  (void)unit;
  if (page == NULL) page = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < MANY; i++) roots[i] = boxroot_create((value)(page + 8 * (i % 4096)));
  return Val_unit;
}
