/* SPDX-License-Identifier: MIT */
/* The two C functions of Ocaml_boxroot, for the OCaml library ocaml-boxroot. Rust libraries have them too: hidden, where
   ocaml-boxroot-cargo has made them, so that several link into one program; where they are not, they take the place of
   these. */
#include "sealed.h"

__attribute__((weak)) value ocaml_boxroot_seal(value kind, value contents) { return seal(Int_val(kind), contents); }

__attribute__((weak)) value ocaml_boxroot_run_job(value job)
{
  (void)run_job(job);
  return Val_unit;
}
