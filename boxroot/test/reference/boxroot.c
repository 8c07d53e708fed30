/* SPDX-License-Identifier: MIT */
#include "boxroot.h"

#include <caml/memory.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Deletion may come from anywhere, so it only records the root; creation, which has the lock and does not run in the GC
   (but for immediates), does the rest. */
static _Atomic(boxroot) deleted;

static void bury(void)
{
  for (boxroot r = atomic_exchange(&deleted, NULL), next; r != NULL; r = next) {
    next = r->next;
    caml_remove_generational_global_root(&r->v);
    free(r);
  }
}

boxroot boxroot_create(value v)
{
  if (Is_block(v)) bury();
  boxroot r = malloc(sizeof *r);
  if (r == NULL) return NULL;
  r->v = v;
  if (Is_block(v)) caml_register_generational_global_root(&r->v);
  return r;
}

void boxroot_delete(boxroot r)
{
  r->next = atomic_load(&deleted);
  while (!atomic_compare_exchange_weak(&deleted, &r->next, r)) {}
}

bool boxroot_modify(boxroot *r, value v)
{
  caml_modify_generational_global_root(&(*r)->v, v);
  return true;
}

bool boxroot_setup(void) { return true; }
void boxroot_teardown(void) {}
int boxroot_status(void) { return BOXROOT_RUNNING; }
char const *boxroot_error_string(void) { return ""; }
void boxroot_get_stats(boxroot_statistics *out)
{
  bury();
  *out = (boxroot_statistics){16384, 2000, 0, 0};
}
