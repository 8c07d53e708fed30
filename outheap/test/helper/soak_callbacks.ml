(* SPDX-License-Identifier: MIT *)
(* What soak_embed.c calls. *)
open Soak_check

let a = Soak_data.cells 30_000
let r = random 90

let work n =
  seconds := 0.;
  Soak_data.shuffle r a "embedded" 5_000;
  if n land 3 = 1 then Domain.join (Domain.spawn (fun () -> litter (random n) 20_000));
  ignore (Gc.major_slice (1 + Random.State.int r 50_000));
  Soak_data.all r a "embedded"

let () =
  Gc.finalise (fun c -> check "finaliser of an embedded program" c) (cell 1);
  at_exit (fun () -> litter r 10_000; Soak_data.all r a "embedded, at exit");
  Callback.register "work" work
