/* SPDX-License-Identifier: MIT */
#include "boxroot.h"
#include <stdlib.h>

enum { CELLS = 2048 };

__thread void *floor_free __attribute__((tls_model("initial-exec"))) = NULL;

boxroot floor_refill(value v)
{
  void **cells = malloc(CELLS * sizeof *cells);
  if (!cells) return NULL;
  for (int i = 0; i < CELLS - 1; i++) cells[i] = &cells[i + 1];
  cells[CELLS - 1] = NULL;
  floor_free = cells;
  return boxroot_create(v);
}
