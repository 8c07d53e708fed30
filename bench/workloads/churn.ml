(* SPDX-License-Identifier: MIT *)
(* churn: many old roots, of which a random one is replaced by a new root that holds a young value (delete and create),
   or gets a young value (modify). The GC runs meanwhile, and is counted. Reports the processor time of one operation.
   Arguments: roots, operations. *)

let measure name ~roots ~operations f =
  Gc.full_major ();
  let major_collections () = (Gc.quick_stat ()).major_collections in
  let collections = major_collections () in
  let start = Bench.cpu () in
  for i = 1 to operations do
    f (Rng.below roots) i
  done;
  Bench.metric name ((Bench.cpu () -. start) *. 1e9 /. float operations) "ns";
  Bench.metric (name ^ ": major collections") (float (major_collections () - collections)) ""

let () =
  let roots = Bench.int_argument 1 ~default:2_000_000 in
  let operations = Bench.int_argument 2 ~default:2_000_000 in
  Slots.make roots;
  for i = 0 to roots - 1 do
    Slots.create i (ref i)
  done;
  measure "delete and create" ~roots ~operations (fun slot i ->
      Slots.delete slot;
      Slots.create slot (ref i));
  measure "modify" ~roots ~operations (fun slot i -> Slots.modify slot (ref i));
  Bench.gc_metrics ()
