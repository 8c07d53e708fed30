(* SPDX-License-Identifier: MIT *)
(* Writes files of the library's OCaml side: the names are on the command line. *)
external text : string -> string = "my_binding_ocaml_text"

let write file = Out_channel.with_open_bin file (fun out -> output_string out (text file))
let () = List.iter write (List.tl (Array.to_list Sys.argv))
