/* SPDX-License-Identifier: MIT */
/* Read before each redirected unit of the runtime of OCaml 5 (5.1 to 5.5): the runtime's internal headers, the table,
   safe forms of what the runtime asks about a value, and the declaration of static data.

   A *foreign* pointer has a clear low bit and does not point to an OCaml block that the table or ranges.h know. The
   collector must not follow it: that is the marker's test (oh_pointer_is_markable), nor look there at all
   (oh_pointer_is_value). Operations on values may see a block of C's there: header.h. The runtime's range test for
   young values is left as it is: minor heaps are in chunks of their own, where no foreign pointer leads.

   How a unit is redirected. A file here has the name of a unit of the runtime. It redefines a few macros, includes the
   unit from the compiler's own sources, and may add functions that use the unit's static ones. Nothing of the runtime
   is copied. Where a macro would depend on the text around its use, a file UNIT.edits has substitutions instead, each
   for one function; a substitution that changes nothing is an error, unless its line begins with a question mark.

   When that is right. The files `rules`, `texts` and `headers` list the properties of the runtime's sources on which
   the overlay depends, for each version with which it was checked, and outheap-build refuses sources without them
   (outheap/tool/rules.py). The file ../digests tells whether the sources are those of such a version, unchanged: where
   they are changed and keep the rules, the user has to name the changed units (--accept). */
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
#include <caml/version.h>
#include "header.h"
#include "pointer.h"
#include "ranges.h"

_Static_assert(sizeof(value) == 8, "Outheap needs 64 bits");

/* For operations on values. A block whose header may be read; here and below, what is foreign and opaque (header.h) is
   none. */
Caml_inline int oh_prelude_is_block(value v) { return (v & 1) == 0 && oh_header_exists((uintptr_t)v); }

/* The header, or that of an abstract block that is neither marked nor moved. Its size is not 0: that would be an
   atom. */
Caml_inline header_t oh_prelude_header(value v)
{
  return oh_header_exists((uintptr_t)v) ? Hd_val(v) : Make_header(1, Abstract_tag, NOT_MARKABLE);
}

/* The tag of a word with a clear low bit, or one for which no operation looks further, nor shortens a path of Forward
   blocks. */
Caml_inline tag_t oh_prelude_tag_for_operation(value v)
{
  return oh_header_exists((uintptr_t)v) ? Tag_val(v) : Lazy_tag;
}

/* For the collector, which never looks at foreign memory. True for its own blocks. A pointer to a region sets the reach
   bit, but one to a tracked region that marking has not reached is told like one to a block. */
Caml_inline int oh_prelude_is_collected(value v)
{
  enum oh_kind k = oh_table_kind((uintptr_t)v);
  if (oh_kind_is_region(k) && (v & 1) == 0) {
    if (oh_track_is_unreached((uintptr_t)v)) return 1;
    oh_region_set_reach_bit((uintptr_t)v, OH_REGION_BY_BLOCK);
  }
  return (v & 1) == 0 && (k == OH_KIND_MAJOR || k == OH_KIND_YOUNG);
}

/* The tag, or one for which the collector does not shorten a path of Forward blocks. To replace a lazy value by its
   foreign result would be wrong, since compiled code reads the tag of what it finds there. */
Caml_inline tag_t oh_prelude_tag(value v) { return oh_pointer_is_value((uintptr_t)v) ? Tag_val(v) : Lazy_tag; }

/* Declares memory outside of the heap that holds blocks with their headers. A pointer may be equal to its end: an empty
   block. Ends the program if there is no memory, since undeclared static data would be opaque to polymorphic
   operations. */
Caml_inline void oh_prelude_declare_values(void const *begin, void const *end)
{
  if (begin < end && oh_ranges_add((uintptr_t)begin + sizeof(header_t), (uintptr_t)end + sizeof(header_t),
                                   OH_RANGES_VALUES, false) != 0)
    caml_fatal_error("Outheap: no memory to declare static data");
}

#endif
