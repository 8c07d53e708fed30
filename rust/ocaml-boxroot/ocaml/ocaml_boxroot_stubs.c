/* SPDX-License-Identifier: MIT */
/* The C functions of Ocaml_boxroot, for the OCaml library ocaml-boxroot. Rust libraries have them too. There
   ocaml-boxroot-cargo hides them, so that several libraries link into one program; where it was not used, they take the
   place of these. */
#include "sealed.h"

__attribute__((weak)) value ocaml_boxroot_seal(value kind, value contents) { return seal(Int_val(kind), contents); }

__attribute__((weak)) value ocaml_boxroot_run_job(value job)
{
  (void)run_job(job);
  return Val_unit;
}
