(* SPDX-License-Identifier: MIT *)
(* A fault of the stock runtime (docs/internals/upstream.md):
   ocamlfind ocamlopt orphans.ml -runtime-variant d -o orphans; ./orphans ROUNDS SEED *)
let () = Random.init (int_of_string Sys.argv.(2))

let body slices () =
  let dead = Array.init 200 (fun _ -> Weak.create 1) in
  Gc.full_major ();
  ignore (Sys.opaque_identity dead);
  Gc.major (); (* a cycle in whose roots they are not begins *)
  for _ = 1 to slices do ignore (Gc.major_slice 2_000) done

let () =
  for _ = 1 to int_of_string Sys.argv.(1) do
    let d = Domain.spawn (body (Random.int 30)) in
    for _ = 1 to Random.int 30 do ignore (Gc.major_slice 500) done;
    Domain.join d;
    ignore (Gc.major_slice 500)
  done
