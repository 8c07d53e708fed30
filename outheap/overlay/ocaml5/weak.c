/* SPDX-License-Identifier: MIT */
/* Weak pointers and ephemerons: a foreign pointer is kept, like an immediate, and never copied. The mark of an empty field is a value of this unit. */
#include "prelude.h"
#include <caml/version.h>
#include <caml/weak.h>

#undef Is_block
#define Is_block(v) oh_is_block(v)

#include <weak.c>

#if OCAML_VERSION >= 50400
#define OH_WEAK_DUMMY weak_dummy
#else
#define OH_WEAK_DUMMY caml_dummy
#endif

void oh_declare_weak_values(void)
{
  oh_declare_static(OH_WEAK_DUMMY, (char const *)OH_WEAK_DUMMY + sizeof OH_WEAK_DUMMY);
}
