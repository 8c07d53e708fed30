/* SPDX-License-Identifier: MIT */
/* Blocks that the tests of Rust values owned by OCaml need. */
#define CAML_NAME_SPACE
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <string.h>

/* As another copy of the library would have made this block: the same operations but at other addresses, the same
   payload. It does not own the payload. */
value testing_foreign_copy(value v)
{
  CAMLparam1(v);
  static struct custom_operations ops;
  static struct custom_fixed_length fixed;
  value copy;
  ops = *(struct custom_operations const *)Custom_ops_val(v);
  fixed = *ops.fixed_length;
  ops.fixed_length = &fixed;
  ops.finalize = NULL;
  copy = caml_alloc_custom(&ops, sizeof(void *), 0, 1);
  memcpy(Data_custom_val(copy), Data_custom_val(v), sizeof(void *));
  CAMLreturn(copy);
}
