(* SPDX-License-Identifier: MIT *)
(* Writes the OCaml side of the library: generate ml, generate mli. *)
external text : string -> string = "tasks_ocaml_text"
let () = print_string (text Sys.argv.(1))
