/* SPDX-License-Identifier: MIT */
/* As in the overlay for OCaml 5: GNU ld says for which version the runtime is when code of OCaml 5 is linked. */
#include <caml/version.h>

#define WANTED(name, version)                                                                          \
  extern char const name[];                                                                            \
  char const name[1] = { 0 };                                                                          \
  static char const warning_##name[] __attribute__((used, section(".gnu.warning." #name))) =            \
    "Outheap's runtime in the folder of -I is for OCaml " OCAML_VERSION_STRING ", but this was compiled by " version;

#ifdef NATIVE_CODE
WANTED(caml_call_realloc_stack, "OCaml 5")
#endif
