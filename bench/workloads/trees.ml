(* SPDX-License-Identifier: MIT *)
(* trees: a large structure of OCaml, built and walked through by foreign code, with a call for each node: a perfect
   binary tree with a boxed float in each node is built; a closure is called with each float; a tree is built of what a
   closure returns for each. Reports the time for a node. Arguments: seconds per measurement; measurements (the median
   counts); depths of trees, with commas. *)

let walked = ref 0.
let add x = walked := !walked +. x
let twice x = x +. x

(* The floats are 0, 1, 2, …, from left to right. *)
let check nodes factor tree =
  walked := 0.;
  Tree.iterate add tree;
  let sum = float factor *. float nodes *. float (nodes - 1) /. 2. in
  if !walked <> sum then Bench.fail "the floats have the sum %g, not %g" !walked sum

let repeat f count = for _ = 1 to count do ignore (Sys.opaque_identity (f ())) done

let () =
  let seconds = float_of_string (Bench.argument 1 ~default:"0.05") and measurements = Bench.int_argument 2 ~default:5 in
  let depths = List.map int_of_string (String.split_on_char ',' (Bench.argument 3 ~default:"10,18")) in
  List.iter (fun depth ->
    let nodes = (1 lsl depth) - 1 in
    let measure name f =
      repeat f 1;
      let once () = Bench.ns_per_operation ~clock:Bench.cpu ~seconds ~chunk:(1 + (10_000 / nodes)) (repeat f) in
      let ns = Bench.median (List.init measurements (fun _ -> once ())) in
      Bench.metric (Printf.sprintf "%s, %d nodes" name nodes) (ns /. float nodes) "ns"
    in
    let tree = Tree.build depth in
    check nodes 1 tree;
    check nodes 2 (Tree.map twice tree);
    measure "build" (fun () -> Tree.build depth);
    measure "walk, a closure for each" (fun () -> Tree.iterate add tree);
    measure "map by a closure" (fun () -> Tree.map twice tree)) depths
