(* SPDX-License-Identifier: MIT *)
(* occupancy: how much memory roots take that come and go at random, of what they would need in a row: pieces of 16 KiB
   (the pools of Boxroot and of 0.4.0) in which there is a live root, over those that the roots fill, and resident
   memory. Arguments: what, roots, and
   - "domains": a number, changes: so many domains, one after the other, each replace that many roots, and end;
   - "random": rounds: in one domain, each round replaces as many random roots as there are; with a value each.
   - "immediate": the same without values: only minor collections, and hardly any major cycle. *)

let per_piece = 2033
let replace slot v = Slots.delete slot; Slots.create slot v

(* At the end the memory that is free in malloc's hands and in the heap is left out, as far as it can be. *)
let report name roots =
  let needed = (roots + per_piece - 1) / per_piece in
  Bench.metric (name ^ ": pieces, of those needed") (float (Slots.pieces ()) /. float needed) ""

let domains ~roots ~number ~changes =
  let began = Bench.wall () and cpu = Bench.cpu () and resident = Bench.resident_bytes () in
  for d = 1 to number do
    Domains.run_all [ (fun () -> for i = 1 to changes do replace (Rng.below roots) (ref i) done) ];
    if d = number / 5 then report "after a fifth of the domains" roots
  done;
  report "at the end" roots;
  Bench.metric "a domain" ((Bench.wall () -. began) *. 1e6 /. float number) "us";
  Bench.metric "a domain, processor time" ((Bench.cpu () -. cpu) *. 1e6 /. float number) "us";
  Bench.metric "resident: growth" (float (Bench.resident_bytes () - resident) /. 1e6) "MB"

let random ~roots ~rounds value =
  let resident = Bench.resident_bytes () in
  let most = ref 0 and cpu = Bench.cpu () in
  for _ = 1 to rounds do
    for i = 1 to roots do
      let v = value i in
      replace (Rng.below roots) v;
      if i land 0xffff = 0 then most := max !most (Slots.pieces ())
    done
  done;
  report "at the end" roots;
  Bench.metric "change" ((Bench.cpu () -. cpu) *. 1e9 /. float (rounds * roots)) "ns";
  Bench.metric "resident: growth" (float (Bench.resident_bytes () - resident) /. 1e6) "MB"

let () =
  let what = Bench.argument 1 ~default:"domains" in
  let roots = Bench.int_argument 2 ~default:100_000 in
  Slots.make roots;
  for i = 0 to roots - 1 do Slots.create i (if what = "immediate" then Obj.repr i else Obj.repr (ref i)) done;
  Gc.full_major ();
  (match what with
   | "domains" ->
     domains ~roots ~number:(Bench.int_argument 3 ~default:2000) ~changes:(Bench.int_argument 4 ~default:1000)
   | "random" -> random ~roots ~rounds:(Bench.int_argument 3 ~default:20) (fun i -> Obj.repr (ref i))
   | "immediate" ->
     random ~roots ~rounds:(Bench.int_argument 3 ~default:20) (fun i -> ignore (Sys.opaque_identity (ref i)); Obj.repr i)
   | other -> Bench.fail "unknown: %s" other);
  Bench.gc_metrics ()
