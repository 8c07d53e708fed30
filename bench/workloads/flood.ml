(* SPDX-License-Identifier: MIT *)
(* flood: millions of roots are deleted by a thread without the lock, and their domain finds out afterwards: in its next
   minor collection, or in the next creation. Once for roots made since the cycle began, once while marking, for roots
   that existed when it began. Reports these pauses in processor time of the thread, medians. Arguments: roots,
   measurements. *)

let creations = 20_000 (* that are timed one by one *)
let collections = 20 (* minor ones, the same *)

let milliseconds f =
  let start = Bench.thread_cpu () in
  f ();
  (Bench.thread_cpu () -. start) *. 1e3

let worst count f = List.fold_left (fun worst i -> max worst (milliseconds (fun () -> f i))) 0. (List.init count Fun.id)

let () =
  let roots = Bench.int_argument 1 ~default:5_000_000 in
  let measurements = Bench.int_argument 2 ~default:3 in
  Slots.make roots;
  let values = Array.init roots (fun i -> ref i) in
  let create i = Slots.create i values.(i) in
  let flood ~marking =
    Slots.delete_all ();
    Gc.full_major ();
    Slots.fill_from values;
    Gc.minor ();
    if marking then Bench.begin_marking ();
    ignore (Slots.delete_by_thread ())
  in
  let report name ~marking =
    let samples =
      List.init measurements (fun _ ->
          flood ~marking;
          let minor = milliseconds Gc.minor in
          let next = milliseconds (fun () -> create 0) in
          let next_ones = worst creations (fun i -> create (i + 1)) in
          let minor_ones = worst collections (fun _ -> Gc.minor ()) in
          flood ~marking;
          let at_once = worst creations create in
          [ minor; next *. 1e3; next_ones *. 1e3; minor_ones; at_once *. 1e3 ])
    in
    let median i = Bench.median (List.map (fun sample -> List.nth sample i) samples) in
    let metric i what unit = Bench.metric (what ^ name) (median i) unit in
    metric 0 "minor collection" "ms";
    metric 1 "next creation" "us";
    metric 2 (Printf.sprintf "worst of %d creations" creations) "us";
    metric 3 (Printf.sprintf "worst of %d more minor collections" collections) "ms";
    metric 4 "worst creation before any collection" "us"
  in
  report "" ~marking:false;
  report ", while marking" ~marking:true
