/* SPDX-License-Identifier: MIT */
/* What the runtime learns about compiled programs: by which version of OCaml they were compiled, and what the code
   around a call is about to do. */
#ifndef OH_PROGRAM_H
#define OH_PROGRAM_H

#include <stdbool.h>

/* --- versions ----------------------------------------------------------------------------------------------------- */

/* Was a program compiled by the OCaml for which this runtime was built? Where versions differ in what compiled code
   and runtime expect of each other, it may be linked all the same, and crash. */

/* `map`: what the program says of its compilation units (caml_globals_map), a marshalled value with digests of
   interfaces. NULL: there is nothing to say against it; otherwise the version by which it was compiled, or "another
   version of OCaml". `own` is the digest of the interface Stdlib for this runtime, 32 hexadecimal digits; anything
   else: not known. Programs without Stdlib pass. */
char const *oh_version_of_other(char const *map, char const *own);

/* Ends the process, with a message and exit code 2, if that says another version than `version`, this runtime's. */
void oh_version_check(char const *map, char const *own, char const *version);

/* --- the code behind a call --------------------------------------------------------------------------------------- */

/* What compiled OCaml code is about to do with the result of a function that it has called.

   The compiler's code for Lazy.force calls the same function as Obj.tag, and from OCaml 5 on it jumps through a table
   of 256 places by what it gets. So it must not get 1001 or 1002, which Obj.tag promises for foreign pointers; and
   nothing in the arguments tells the two apart. The code behind the call does. The jump follows at once: some moves
   between registers, a shift that makes an index out of OCaml's integer, the table's address. A program compares the
   number, returns it, stores it, calculates with it, or gives it to a function.

   The answer "keeps" is given only for instructions that are known, and not part of such a jump. For anything else,
   and on other processors, it is "perhaps not": so the worst is that a program sees another number. */

/* `code`: where a call of a function returns to, in code that may be read; the function's result is an OCaml integer.
   True: the caller does not jump through a table by it before it has compared it. Takes no lock. Cost: some ten
   nanoseconds. */
bool oh_caller_keeps(void const *code);

#endif
