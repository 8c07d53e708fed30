(* SPDX-License-Identifier: MIT *)
(* pinned: many roots are made, and all but a few deleted, so that one stays in each pool for ever. Afterwards the
   program goes on with as many roots again, a thousand at a time, which live where the others died. Reports processor
   time and the worst step (a thousand operations). Arguments: roots, one in how many stays. *)

let step = 1000

let () =
  let roots = Bench.int_argument 1 ~default:10_000_000 in
  let one_in = Bench.int_argument 2 ~default:2_000 in
  Slots.make roots;
  let start = Bench.cpu () in
  let create ~missing () =
    Steps.resume ();
    for i = 0 to roots - 1 do
      if not (missing && i mod one_in = 0) then Slots.create i (ref i);
      if i mod step = step - 1 then Steps.step ()
    done
  in
  let delete () = Slots.delete_but one_in in
  let phase name f =
    let start = Bench.cpu () in
    f ();
    Bench.metric name ((Bench.cpu () -. start) *. 1e9 /. float roots) "ns"
  in
  Steps.start ();
  phase "create" (create ~missing:false);
  phase "delete" delete;
  phase "create again" (create ~missing:true);
  phase "delete again" delete;
  Bench.metric "time" (Bench.cpu () -. start) "s";
  Steps.metrics "step";
  Bench.metric "resident" (float (Bench.resident_bytes ()) /. 1e6) "MB";
  Bench.gc_metrics ()
