(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml: OCaml 5 has domains. *)

let at_once fs = List.iter Domain.join (List.map Domain.spawn fs)
