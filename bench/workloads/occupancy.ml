(* SPDX-License-Identifier: MIT *)
(* occupancy: how much memory roots take that come and go at random, beside what they need in a row: pieces of 16 KiB
   (the pools of Boxroot and of 0.4.0) in which there is a root, of those that the roots would fill; resident memory.
   Arguments: what, roots, a number, and
   - "domains", changes: so many domains, one after the other, each replace that many random roots, and end;
   - "beside", changes: the same, and the first domain replaces as many after each;
   - "random": in one domain, as many as there are roots are replaced, so many times; each has a value;
   - "immediates": the same with integers, and one garbage block for each root: minor collections, few major cycles. *)

let per_piece = 2033 (* roots in a pool of Boxroot *)
let replace slot v = Slots.delete slot; Slots.create slot v
let pieces_of_needed roots = float (Slots.pieces ()) /. float ((roots + per_piece - 1) / per_piece)
let report name roots = Bench.metric (name ^ ": pieces, of those needed") (pieces_of_needed roots) ""

(* The time of [f] for each of [number] operations, and the memory by which the process grows in it. *)
let measured name ~scale ~unit ~number f =
  let resident = Bench.resident_bytes () and cpu = Bench.cpu () in
  f ();
  Bench.metric name ((Bench.cpu () -. cpu) *. scale /. float number) unit;
  Bench.metric "resident: growth" (float (Bench.resident_bytes () - resident) /. 1e6) "MB"

let domains ~roots ~number ~changes ~beside =
  let some () = for i = 1 to changes do replace (Rng.below roots) (ref i) done in
  measured "a domain, processor time" ~scale:1e6 ~unit:"us" ~number (fun () ->
      for d = 1 to number do
        Domains.run_all [ some ];
        if beside then some ();
        if d = number / 5 then report "after a fifth of the domains" roots
      done);
  report "at the end" roots

let random ~roots ~number value =
  measured "replacement" ~scale:1e9 ~unit:"ns" ~number:(roots * number) (fun () ->
      for _ = 1 to number do
        for i = 1 to roots do
          let v = value i in
          replace (Rng.below roots) v
        done
      done);
  report "at the end" roots

let () =
  let what = Bench.argument 1 ~default:"domains" in
  let roots = Bench.int_argument 2 ~default:100_000 and number = Bench.int_argument 3 ~default:2000 in
  let changes = Bench.int_argument 4 ~default:1000 in
  let with_value i = Obj.repr (ref i) in
  let with_garbage i = ignore (Sys.opaque_identity (ref i)); Obj.repr i in
  Slots.make roots;
  for i = 0 to roots - 1 do Slots.create i (if what = "immediates" then Obj.repr i else with_value i) done;
  Gc.full_major ();
  (match what with
   | "domains" | "beside" -> domains ~roots ~number ~changes ~beside:(what = "beside")
   | "random" -> random ~roots ~number with_value
   | "immediates" -> random ~roots ~number with_garbage
   | other -> Bench.fail "unknown: %s" other);
  Bench.gc_metrics ()
