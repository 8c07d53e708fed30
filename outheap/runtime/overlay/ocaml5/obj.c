/* SPDX-License-Identifier: MIT */
/* Obj.tag, and copies. The texts of two functions are changed by obj.edits.

   Stock   is 1002 for a pointer that is not aligned; otherwise it reads the header, through Hp_atomic_val, and takes
           the tag out of it by Tag_hd.
   Here    it is 1001 for an opaque foreign pointer, as in OCaml 4: Hp_atomic_val leads to a header that no block has,
           which Tag_hd knows.
   Stock   in native code, Lazy.force calls the same function, and jumps through a table of 256 places by the result.
   Here    it gets the tag of an abstract block in place of 1001 and 1002: program.h. So do other callers of which the
           code is not known to use the result as a number. C code and the interpreter compare it.
   Also    a large copy asks for room first, if memory is limited (cycle.h). */
#include "prelude.h"
#include "cycle.h"

#define NO_HEADER (~(header_t)0)
static atomic_uintnat no_header = NO_HEADER;
#undef Hp_atomic_val
#define Hp_atomic_val(v) (oh_header_exists((uintptr_t)(v)) ? (atomic_uintnat *)(v) - 1 : &no_header)
#undef Tag_hd
#define Tag_hd(hd) ((hd) == NO_HEADER ? 1001 : (int)((hd) & HEADER_TAG_MASK))

#ifdef NATIVE_CODE
#include "program.h"
#include <caml/codefrag.h>

static __attribute__((noinline, cold)) int tag_for_caller(int tag, void *code)
{
  return caml_find_code_fragment_by_pc(code) == NULL || oh_caller_keeps(code) ? tag : Abstract_tag;
}
#define for_caller(tag) \
  (__builtin_expect((tag) > 1000, 0) ? tag_for_caller(tag, __builtin_return_address(0)) : (tag))
#else
#define for_caller(tag) (tag)
#endif

#define caml_alloc_shr(words, tag) (oh_cycle_make_room(Bsize_wsize(words)), (caml_alloc_shr)(words, tag))

#include <obj.c>
