/* SPDX-License-Identifier: MIT */
/* A custom block that owns a root. */
#include "checked_root.h"
#include <caml/custom.h>

#define Root_val(v) (*(boxroot *)Data_custom_val(v))

static void finalize(value v) { boxroot_delete(Root_val(v)); }

static struct custom_operations operations = {
  .identifier = "bench.owned_root",
  .finalize = finalize,
  .compare = custom_compare_default,
  .hash = custom_hash_default,
  .serialize = custom_serialize_default,
  .deserialize = custom_deserialize_default,
  .compare_ext = custom_compare_ext_default,
  .fixed_length = custom_fixed_length_default,
};

value owned_create(value v)
{
  boxroot root = checked_create(v);
  value block = caml_alloc_custom(&operations, sizeof(boxroot), 0, 1);
  Root_val(block) = root;
  return block;
}

value owned_get(value block) { return boxroot_get(Root_val(block)); }
