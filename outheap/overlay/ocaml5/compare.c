/* SPDX-License-Identifier: MIT */
/* Structural comparison, by the rules of OCaml 4: immediates come before foreign pointers, which are ordered by address. The order between
   foreign pointers and blocks is: foreign first.

   To the unit a foreign pointer is `Is_long`. It then computes `Long_val(v1) - Long_val(v2)`, which becomes the sign of the comparison, and 0; what else it applies Long_val to, an offset and the identities of objects,
   stays. Where one side is long and the other a custom block, the block's compare_ext is called only if the long one is an immediate. */
#include "prelude.h"
#include <caml/custom.h>

Caml_inline intnat oh_order(value v1, value v2)
{
  if ((v1 ^ v2) & 1) return v1 & 1 ? -2 : 2; /* one immediate */
  if (v1 & 1) return v1 < v2 ? -2 : v1 > v2 ? 2 : 0;
  return (uintptr_t)v1 < (uintptr_t)v2 ? -2 : (uintptr_t)v1 > (uintptr_t)v2 ? 2 : 0;
}

#undef Is_long
#define Is_long(v) (!oh_is_block(v))
#undef Long_val
#define Long_val(x) (OH_LONG_##x >> 1)
#define OH_LONG_v1 oh_order(v1, v2)
#define OH_LONG_v2 0
#define OH_LONG_last last /* last->offset */
#define OH_LONG_Field(block, i) Field(block, i) /* in Oid_val */
#define compare_ext compare_ext; if (((v1 | v2) & 1) == 0) compare = NULL

#include <compare.c>
