/* SPDX-License-Identifier: MIT */
/* Read before each redirected unit of the runtime (OCaml 5.3 and 5.4): the internal headers, the table, and safe forms of what the runtime
   asks about a value.

   How a unit is redirected. A file here has the name of a unit of the runtime. It redefines a few macros, includes the unit from the compiler's own
   sources, and may add functions that see the unit's static ones. Nothing of the runtime is repeated here; where a macro relies on the name
   of a variable at its place of use, it says so, and the tool knows by their digests the sources for which that was checked.

   What is redefined, and why. A *foreign* pointer has its low bit clear and points to no OCaml block. The collector must not follow it, which is the
   marker's test (oh_marks), and nobody may read a header behind it (oh_is_value). The range test for young values is left alone: minor heaps lie in chunks of their own, where no
   foreign pointer can lead. */
#ifndef OH_PRELUDE_H
#define OH_PRELUDE_H

#ifndef CAML_INTERNALS
#define CAML_INTERNALS
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <caml/mlvalues.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/platform.h>
#include <caml/shared_heap.h>
#include <caml/domain.h>
#include "table.h"

_Static_assert(sizeof(value) == 8, "Outheap needs 64 bits");

/* A block whose header may be read. */
Caml_inline int oh_is_block(value v) { return (v & 1) == 0 && oh_is_value((uintptr_t)v); }

/* The header that stands in for a missing one: an abstract block that is neither marked nor moved. Not of size 0: that would be an atom. */
#define OH_FOREIGN_HEADER Make_header(1, Abstract_tag, NOT_MARKABLE)
Caml_inline header_t oh_header(value v) { return oh_is_value((uintptr_t)v) ? Hd_val(v) : OH_FOREIGN_HEADER; }

/* The tag that stands in for a missing one where the runtime would shorten a path of Forward blocks: Lazy says no. To replace a lazy
   value by its foreign result would be wrong, since compiled code looks at the tag of what it finds there. */
Caml_inline tag_t oh_tag(value v) { return oh_is_value((uintptr_t)v) ? Tag_val(v) : Lazy_tag; }

/* hooks.c: static data of the program and of the runtime's own units. */
void oh_declare_static(void const *begin, void const *end);
void oh_declare_runtime_values(void);
void *oh_minor_heaps_reserve(uintptr_t bytes);
void oh_minor_heaps_release(void *start, uintptr_t bytes);
void *oh_minor_heap_commit(void *start, uintptr_t bytes);
void oh_minor_heap_discard(void *start, uintptr_t bytes);

#endif
