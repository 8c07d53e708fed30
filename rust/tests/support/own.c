/* SPDX-License-Identifier: MIT */
/* Blocks that the tests of Rust values owned by OCaml need, and the benchmark compares with. */
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/mlvalues.h>
#include <boxroot.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
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

/* Whether the value is a block in a minor heap. */
bool testing_is_young(value v) { return Is_block(v) && Is_young(v); }

/* What benches/owned.rs compares with: a number behind a custom block. */

static void free_number(value v) { free(*(uint64_t **)Data_custom_val(v)); }
static struct custom_operations const number_ops = {.identifier = "testing_number", .finalize = free_number};

value testing_number(uint64_t n)
{
  uint64_t *number = malloc(sizeof *number);
  value v;
  if (number == NULL) abort();
  *number = n;
  v = caml_alloc_custom_mem((struct custom_operations *)&number_ops, sizeof number, sizeof *number);
  *(uint64_t **)Data_custom_val(v) = number;
  return v;
}

void testing_numbers(size_t count)
{
  for (size_t i = 0; i < count; i++) {
    value v = testing_number(i);
    __asm__ volatile("" : : "r"(v) : "memory");
  }
}

uint64_t testing_read_number(boxroot root, size_t count)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    __asm__ volatile("" : "+r"(root) : : "memory");
    sum += **(uint64_t **)Data_custom_val(boxroot_get(root));
  }
  return sum;
}
