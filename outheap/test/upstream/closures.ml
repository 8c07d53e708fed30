(* SPDX-License-Identifier: MIT *)
(* A fault of the stock runtime (docs/internals/upstream.md):
   ocamlfind ocamlopt closures.ml -o closures; ./closures *)
let opaque = Sys.opaque_identity

let make i =
  let s = opaque (string_of_int i) in
  let rec f n = if n = 0 then s else g (n - 1)
  and g n = if n = 0 then s ^ "g" else f (n - 1) in
  ignore (opaque (Obj.repr f));
  Obj.repr g

let () =
  let keys = Array.init 100 make in
  let all = Array.map (fun k -> Ephemeron.K1.make k (ref "data")) keys in
  Gc.full_major ();
  Gc.full_major ();
  let others = Array.init 10_000 string_of_int in
  Array.iteri (fun i e -> match Ephemeron.K1.query e keys.(i) with
    | Some r when String.equal !r "data" -> ()
    | _ -> Printf.printf "%d is lost\n" i; exit 1) all;
  ignore (opaque (keys, others))
