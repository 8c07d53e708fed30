/* SPDX-License-Identifier: MIT */
/* Blocks that only this library makes, for Rust. */
#include "sealed.h"
#include "obx.h"
#include <caml/callback.h>

value obx_seal(int kind, value contents) { return seal(kind, contents); }

/* What the OCaml module handed over, or 0. */
value obx_sealed(int kind)
{
  value const *named = caml_named_value(kinds[kind].identifier);
  value **place = named == NULL ? NULL : sealed(*named, kind);
  return place == NULL ? 0 : **place;
}

/* A block with something to be run once. May run the collector, before. */
value obx_job(void (*run)(void *), void *data)
{
  value v = obx_alloc_custom(&kinds[JOB], sizeof(struct job), 0);
  *(struct job *)Data_custom_val(v) = (struct job){run, data};
  return v;
}

void *obx_take_job(value v) { return take_job(v); }
bool obx_run_job(value v) { return run_job(v); }
