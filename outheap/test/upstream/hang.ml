(* SPDX-License-Identifier: MIT *)
(* A fault of the stock runtime (docs/internals/upstream.md):
   ocamlfind ocamlopt hang.ml -o hang; OCAMLRUNPARAM=s=4k ./hang 300 *)
let () =
  for round = 1 to int_of_string Sys.argv.(1) do
    let arrays = ref [||] in
    Domain.join (Domain.spawn (fun () -> arrays := Array.init 750 (fun _ -> Weak.create 4)));
    if round mod 5 = 0 then Gc.full_major ();
    ignore (Sys.opaque_identity !arrays)
  done
