(* SPDX-License-Identifier: MIT *)
(* contention: one array of roots that several domains change at the same time. At each step a domain makes a root,
   swaps it with the one in a random slot, reads and deletes that; most of those were made by another domain. Threads
   without the lock, if there are any, take roots out of random slots and delete them. With few slots, all live roots of
   a domain lie in one pool: so many at once create and delete in it. Reports wall clock and processor time per step.
   Arguments: domains, threads, slots, steps of all domains together. *)

external setup : slots:int -> unit = "contention_setup"
(* false: what was in the slot is not as it was made *)
external swap : int -> int ref -> bool = "contention_swap" [@@noalloc]
external start_threads : int -> unit = "contention_start_threads"
external stop_threads : unit -> int = "contention_stop_threads" (* how many roots they have deleted *)
external clear : unit -> unit = "contention_clear"

let () =
  let domains = Bench.int_argument 1 ~default:2 and threads = Bench.int_argument 2 ~default:0 in
  let slots = Bench.int_argument 3 ~default:256 in
  let share = Bench.int_argument 4 ~default:2_000_000 / domains in
  setup ~slots;
  let work id =
    let lots = Rng.create id in
    for i = 1 to share do
      if not (swap (Rng.From.below lots slots) (ref i)) then Bench.fail "a root has lost its value"
    done
  in
  let wall = Bench.wall () and cpu = Bench.cpu () in
  start_threads threads;
  Domains.copies domains work;
  let by_threads = stop_threads () in
  let per_step seconds = seconds *. 1e9 /. float (share * domains) in
  Bench.metric "per step" (per_step (Bench.wall () -. wall)) "ns";
  Bench.metric "per step, processor time" (per_step (Bench.cpu () -. cpu)) "ns";
  if threads > 0 then Bench.metric "share deleted by threads" (float by_threads /. float (share * domains)) "";
  Bench.gc_metrics ();
  clear ()
