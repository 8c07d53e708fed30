/* SPDX-License-Identifier: MIT */
/* Custom blocks that record what finalised them, roots in a table of C, and the end of a process at once. */
#define CAML_NAME_SPACE
#define CAML_INTERNALS /* Caml_state_opt */
#include "boxroot.h"
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/domain_state.h>
#include <caml/memory.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORD = 0x5eed };
struct custom { intptr_t number, check; };
static atomic_long finalised, elsewhere;

/* A thread that has no domain has no state; a domain's backup thread has that of its domain. */
static void finalise(value v)
{
  struct custom *c = Data_custom_val(v);
  if (c->check != (c->number ^ WORD)) abort();
  c->check = 0;
  atomic_fetch_add(&finalised, 1);
  if (Caml_state_opt == NULL) atomic_fetch_add(&elsewhere, 1);
}
static struct custom_operations operations = {
  "soak", finalise, custom_compare_default, custom_hash_default, custom_serialize_default, custom_deserialize_default,
  custom_compare_ext_default, custom_fixed_length_default};

value soak_custom(value number)
{
  value v = caml_alloc_custom(&operations, sizeof(struct custom), 0, 1);
  struct custom *c = Data_custom_val(v);
  c->number = Long_val(number), c->check = c->number ^ WORD;
  return v;
}
value soak_custom_value(value v)
{
  struct custom *c = Data_custom_val(v);
  return Val_long(c->check == (c->number ^ WORD) ? c->number : -1);
}
value soak_finalised(value unit) { (void)unit; return Val_long(atomic_load(&finalised)); }
value soak_finalised_elsewhere(value unit) { (void)unit; return Val_long(atomic_load(&elsewhere)); }

enum { ROOTS = 100000 };
static boxroot roots[ROOTS];
value soak_root_create(value i, value v) { return Val_bool((roots[Long_val(i)] = boxroot_create(v)) != NULL); }
value soak_root_get(value i) { return boxroot_get(roots[Long_val(i)]); }
value soak_root_modify(value i, value v) { return Val_bool(boxroot_modify(&roots[Long_val(i)], v)); }
value soak_root_delete(value i) { boxroot_delete(roots[Long_val(i)]); return Val_unit; }

value soak_exit(value code) { _exit(Int_val(code)); }
