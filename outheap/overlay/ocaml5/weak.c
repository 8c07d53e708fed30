/* SPDX-License-Identifier: MIT */
/* Weak pointers and ephemerons.

   Stock   reads the headers of keys and data.
   Here    a foreign pointer counts as an immediate: it is kept, and never copied.
   Also    the value that marks an empty field is a static one of this unit, which is declared. */
#include "prelude.h"
#include "static_data.h"
#include "weak.h"
#include <caml/version.h>
#include <caml/weak.h>

#undef Is_block
#define Is_block(v) oh_prelude_is_block(v)

#include <weak.c>

#if OCAML_VERSION >= 50400
#define OH_WEAK_NONE weak_dummy
#else
#define OH_WEAK_NONE caml_dummy
#endif

void oh_weak_declare(void) { oh_static_data_declare(OH_WEAK_NONE, (char const *)OH_WEAK_NONE + sizeof OH_WEAK_NONE); }
