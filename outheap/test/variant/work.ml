(* SPDX-License-Identifier: MIT *)
(* Small and large blocks, compactions (where the runtime's own account of them can be trusted), and a check of what is
   there. *)
let compact = if Sys.getenv_opt "OUTHEAP_TEST_NO_COMPACTION" = None then Gc.compact else Gc.full_major

let run_with blocks seed =
  let random = Random.State.make [| seed |] in
  let table = Hashtbl.create 16 in
  for i = 1 to blocks do
    Hashtbl.replace table (Random.State.int random 1_000) (Array.init (1 + Random.State.int random 300) (fun j ->
      Some (i + j)));
    if i mod (blocks / 3) = 0 then compact ()
  done;
  Hashtbl.iter (fun _ a ->
    Array.iteri (fun j v -> if v <> Some (Option.get a.(0) + j) then failwith "contents") a) table

let run = run_with 6_000
let run_little = run_with 1_500
