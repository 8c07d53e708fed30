(* SPDX-License-Identifier: MIT *)
(* What soak_embed.c calls. *)
open Soak_check

let a = Soak_data.cells (try int_of_string (Sys.getenv "SOAK_CELLS") with Not_found -> 30_000)
let r = random 90

external custom : int -> Obj.t = "soak_embed_custom"

let customs = Array.init 2_000 custom

let work n =
  seconds := 0.;
  Soak_data.shuffle r a "embedded" 5_000;
  if n land 3 = 1 then Domain.join (Domain.spawn (fun () -> litter (random n) 20_000));
  for i = 0 to 199 do customs.((n * 200 + i) mod 2_000) <- custom i done;
  ignore (Gc.major_slice (1 + Random.State.int r 50_000));
  Soak_data.all r a "embedded"

let () =
  Gc.finalise (fun c -> check "finaliser of an embedded program" c) (cell 1);
  at_exit (fun () -> litter r 10_000; Soak_data.all r a "embedded, at exit");
  Callback.register "work" work
