/* SPDX-License-Identifier: MIT */
/* A program as it was written for 0.4.0: the header alone, included first, and every name that it had. */
#include "boxroot.h"
#include <errno.h>

struct pair { boxroot first, second; };

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
  if (!prepare()) return 1;
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
  return 0;
}
