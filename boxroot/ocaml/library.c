/* SPDX-License-Identifier: MIT */
/* The C library, as a part of the OCaml one. */
#include "../src/all.c"
