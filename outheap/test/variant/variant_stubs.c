/* SPDX-License-Identifier: MIT */
#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <stdint.h>
#include <stdlib.h>

value variant_malloc(value bytes) { return (value)malloc(Long_val(bytes)); }
value variant_word(value pattern) { return (value)(*(uint64_t *)Data_custom_val(pattern) & ~(uint64_t)1); }
value variant_code(value unit)
{
  (void)unit;
  return (value)((uintptr_t)&variant_code & ~(uintptr_t)1);
}
