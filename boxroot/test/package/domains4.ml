(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml: OCaml 4.14 has no domains, so one function is called after another. *)

let at_once fs = List.iter (fun f -> f ()) fs
