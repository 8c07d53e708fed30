(* SPDX-License-Identifier: MIT *)
(* Players of a model, in domains with threads. *)

let seed =
  Random.self_init ();
  match Sys.getenv_opt "BOXROOT_TEST_SEED" with Some s -> int_of_string s | None -> Random.bits ()

(* `play n` in each, with another n. *)
let all ~domains ~threads play =
  Printf.printf "BOXROOT_TEST_SEED=%d\n%!" seed;
  let several d () =
    if threads = 1 then play (10 * d)
    else List.iter Thread.join (List.init threads (fun t -> Thread.create play ((10 * d) + t)))
  in
  let others = List.init (domains - 1) (fun d -> Par.spawn (several (d + 1))) in
  several 0 ();
  List.iter Par.join others
