/* SPDX-License-Identifier: MIT */
/* Programs of another version of OCaml want functions that this runtime has not, and the linker names only these. GNU
   ld takes this file for one of them, and then prints its warning too. So that it does not take it for all that is
   missing, the file wants something that nobody has. What links after all is told when it starts (program.h). */
#include <caml/version.h>

#define IS_FOR "Outheap's runtime in the folder of -I is for OCaml " OCAML_VERSION_STRING ", but this was compiled by "
#define WANTED(name, version)                                                                          \
  extern char const name[];                                                                            \
  char const name[1] = { 0 };                                                                          \
  static char const warning_##name[] __attribute__((used, section(".gnu.warning." #name))) = IS_FOR version;

#ifdef NATIVE_CODE
extern char const outheap_is_for_another_version_of_OCaml[];
static char const *const missing __attribute__((used)) = outheap_is_for_another_version_of_OCaml;
WANTED(caml_system__frametable, "OCaml 4")
#if OCAML_VERSION < 50400
WANTED(caml_atomic_exchange_field, "OCaml 5.4 or later")
WANTED(caml_sys_io_buffer_size, "OCaml 5.4 or later")
#endif
#if OCAML_VERSION < 50500
WANTED(caml_sys_proc_self_exe, "OCaml 5.5 or later")
WANTED(caml_gc_tweak_get, "OCaml 5.5 or later")
#endif
#endif
