/* SPDX-License-Identifier: MIT */
/* Weak pointers and ephemerons. The texts of three functions are changed by weak.edits.

   Stock   reads the headers of keys, and of what is copied.
   Here    in cleaning, keys that are not the collector's are alive, and not looked at. An opaque foreign pointer is
           never copied.
           A tracked region that marking has not reached is dead, as a block is that is not marked: keys that lead there
           are cleared.
   Also    the value that marks an empty field is a static one of this unit, which is declared.
           A large array asks for room first, if memory is limited (cycle.h). */
#include "prelude.h"
#include "cycle.h"
#include "weak.h"
#include <caml/version.h>
#include <caml/weak.h>

#define is_unmarked(v) (oh_track_is_unreached((uintptr_t)(v)) || (is_unmarked)(v))

#define caml_alloc_shr(words, tag) (oh_cycle_make_room(Bsize_wsize(words)), (caml_alloc_shr)(words, tag))

#include <weak.c>

#if OCAML_VERSION >= 50400
#define OH_WEAK_NONE weak_dummy
#else
#define OH_WEAK_NONE caml_dummy
#endif

void oh_weak_declare(void)
{
  oh_prelude_declare_values(OH_WEAK_NONE, (char const *)OH_WEAK_NONE + sizeof OH_WEAK_NONE);
}
