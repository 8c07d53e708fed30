(* SPDX-License-Identifier: MIT *)
(* old_roots: deletion of roots in C, each of which holds an old value of its own: of roots made since the cycle began;
   and while marking, of roots that existed when it began, in a row or in random order. Reports the processor time of
   one deletion (median).
   Arguments: roots, measurements. *)

let () =
  let roots = Bench.int_argument 1 ~default:1_000_000 in
  let measurements = Bench.int_argument 2 ~default:5 in
  Slots.make roots;
  let values = Array.init roots (fun i -> ref i) in
  let delete ~marking ~shuffled _ =
    Gc.full_major ();
    Slots.fill_from values;
    if shuffled then Slots.shuffle ();
    if marking then Bench.begin_marking ();
    let start = Bench.cpu () in
    Slots.delete_all ();
    (Bench.cpu () -. start) *. 1e9 /. float roots
  in
  let report name ~marking ~shuffled =
    Bench.metric ("delete, " ^ name) (Bench.median (List.init measurements (delete ~marking ~shuffled))) "ns"
  in
  report "new roots, in a row" ~marking:false ~shuffled:false;
  report "new roots, shuffled" ~marking:false ~shuffled:true;
  report "old roots while marking, in a row" ~marking:true ~shuffled:false;
  report "old roots while marking, shuffled" ~marking:true ~shuffled:true
