(* SPDX-License-Identifier: MIT *)
external text : string -> string = "exports_ocaml_text"
let () = print_string (text Sys.argv.(1))
