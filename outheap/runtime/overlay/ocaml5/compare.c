/* SPDX-License-Identifier: MIT */
/* Polymorphic comparison. The text of do_compare_val is changed by compare.edits.

   Stock   reads the header of every word that is not an immediate.
   Here    opaque foreign pointers have the rules of OCaml 4: immediates come before them, they come before blocks, and
           are in the order of their addresses. To do_compare_val such a pointer is like an immediate, except where two
           of them are compared, and where a custom block may compare itself with an immediate (compare_ext). */
#include "prelude.h"
#include <caml/custom.h>

/* Two different words, neither of them a block: negative, positive. */
Caml_inline intnat order(value v1, value v2)
{
  if ((v1 ^ v2) & 1) return v1 & 1 ? -1 : 1; /* one immediate */
  if (v1 & 1) return v1 < v2 ? -1 : v1 > v2;
  return (uintptr_t)v1 < (uintptr_t)v2 ? -1 : (uintptr_t)v1 > (uintptr_t)v2;
}

#include <compare.c>
