/* SPDX-License-Identifier: MIT */
/* Was a program compiled by the OCaml for which this runtime was built? Where versions differ in what compiled code
   and runtime expect of each other, it may be linked all the same, and crash. */
#ifndef OH_VERSION_H
#define OH_VERSION_H

/* `map`: what the program says of its compilation units (caml_globals_map), a marshalled value with digests of
   interfaces. NULL: there is nothing to say against it; otherwise the version by which it was compiled, or "another
   version of OCaml". `own` is the digest of the interface Stdlib for this runtime, 32 hexadecimal digits; anything
   else: not known. Programs without Stdlib pass. */
char const *oh_version_of_other(char const *map, char const *own);

/* Ends the process, with a message and exit code 2, if that says another version than `version`, this runtime's. */
void oh_version_check(char const *map, char const *own, char const *version);

#endif
