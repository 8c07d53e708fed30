/* SPDX-License-Identifier: MIT */
/* What compiled OCaml code is about to do with the result of a function that it has called.

   The compiler's code for Lazy.force calls the same function as Obj.tag, and from OCaml 5 on it jumps through a table
   of 256 places by what it gets. So it must not get 1001 or 1002, which Obj.tag promises for foreign pointers; and
   nothing in the arguments tells the two apart. The code behind the call does. The jump follows at once: some moves
   between registers, a shift that makes an index out of OCaml's integer, the table's address. A program compares the
   number, returns it, stores it, calculates with it, or gives it to a function.

   The answer "keeps" is given only for instructions that are known, and not part of such a jump. For anything else,
   and on other processors, it is "perhaps not": so the worst is that a program sees another number. */
#ifndef OH_CALLER_H
#define OH_CALLER_H

#include <stdbool.h>

/* `code`: where a call of a function returns to, in code that may be read; the function's result is an OCaml integer.
   True: the caller does not jump through a table by it before it has compared it. Takes no lock. Cost: some ten
   nanoseconds. */
bool oh_caller_keeps(void const *code);

#endif
