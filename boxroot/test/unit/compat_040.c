/* SPDX-License-Identifier: MIT */
/* A program as it was written for 0.4.0: the header alone, included first, and every name that it had. It has functions
   of its own whose names begin like the library's, as one in 0.4.0's repository has. */
#include "boxroot.h"
#include <errno.h>

struct pair { boxroot first, second; };

/* Primitives for its OCaml code, and helpers. */
value boxroot_stats(value unit);
value boxroot_stats(value unit) { boxroot_print_stats(); return unit; }
value boxroot_init(value unit);
value boxroot_init(value unit) { return boxroot_setup() ? unit : 0; }
boxroot boxroot_new(value v);
boxroot boxroot_new(value v) { return boxroot_create(v); }
void boxroot_free(boxroot r);
void boxroot_free(boxroot r) { boxroot_delete(r); }
bool boxroot_set(boxroot *r, value v);
bool boxroot_set(boxroot *r, value v) { return boxroot_modify(r, v); }
static boxroot boxroot_copy(boxroot r) { return boxroot_create(boxroot_get(r)); }
static bool boxroot_check(boxroot r) { return r != NULL; }
static int boxroot_live, boxroot_count, boxroot_debug;
typedef struct boxroot_list { boxroot root; struct boxroot_list *next; } boxroot_list;
typedef struct { boxroot at[2]; } boxroot_array;

static bool prepare(void)
{
  boxroot_setup_systhreads();
  return boxroot_setup() && boxroot_status() == BOXROOT_RUNNING;
}

static char const *explain(void)
{
  switch (boxroot_status()) {
  case BOXROOT_TORE_DOWN:
  case BOXROOT_INVALID: return boxroot_error_string();
  case BOXROOT_NOT_SETUP:
  case BOXROOT_RUNNING:
    if (errno == EPERM || errno == ENOMEM) return boxroot_error_string();
  }
  return "?";
}

/* 0, or the number of the statement that failed. */
int compat_040_test(value v)
{
  struct pair p;
  boxroot_list list = {NULL, NULL};
  boxroot_array array;
  if (!prepare() || boxroot_init((value)1) == 0) return 1;
  p.first = boxroot_create(v);
  if (p.first == NULL) return explain()[0] ? 2 : 3;
  p.second = boxroot_create(boxroot_get(p.first));
  if (p.second == NULL) return 4;
  value const *ref = boxroot_get_ref(p.second);
  if (*ref != v) return 5;
  if (!boxroot_modify(&p.second, (value)1)) return 6;
  if (boxroot_get(p.second) != (value)1) return 7;
  if (boxroot_get(p.first) != v) return 8;
  boxroot_delete(p.first);
  boxroot_delete(p.second);
  list.root = boxroot_new(v);
  if (!boxroot_check(list.root) || !boxroot_set(&list.root, (value)3)) return 9;
  array.at[0] = boxroot_copy(list.root);
  if (!boxroot_check(array.at[0]) || boxroot_get(array.at[0]) != (value)3) return 10;
  boxroot_free(array.at[0]);
  boxroot_free(list.root);
  boxroot_live = boxroot_count = boxroot_debug = 0;
  (void)boxroot_stats;
  return boxroot_live + boxroot_count + boxroot_debug;
}
