(* SPDX-License-Identifier: MIT *)
(* local_roots: a fixpoint reached after N steps, computed by recursion in C that calls back to OCaml at each step. Reports the
   time of one whole computation. Arguments: seconds per measurement, measurements of each N (the median counts). *)

let computations n count =
  let step x = if x >= float n then x else x +. 1. in
  for _ = 1 to count do
    if Fixpoint.fixpoint step 1. <> float n then Bench.fail "wrong fixpoint"
  done

let () =
  let seconds = float_of_string (Bench.argument 1 ~default:"0.03") and measurements = Bench.int_argument 2 ~default:5 in
  let median_ns n =
    computations n 1;
    Bench.median (List.init measurements (fun _ -> Bench.ns_per_operation ~seconds ~chunk:(1 + (20_000 / n)) (computations n)))
  in
  List.iter (fun n -> Bench.metric (Printf.sprintf "N=%d" n) (median_ns n) "ns") [ 1; 2; 5; 10; 100; 1000 ]
