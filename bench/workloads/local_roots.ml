(* SPDX-License-Identifier: MIT *)
(* local_roots: a fixpoint reached after N steps, computed by recursion in C that calls back to OCaml at each step.
   Reports the time of one whole computation. With several domains, each does it all at the same time, and the mean of
   their times is reported. Arguments: seconds per measurement, or count for a run under callgrind; measurements of each
   N (the median counts); domains. *)

let computations n count =
  let step x = if x >= float n then x else x +. 1. in
  for _ = 1 to count do
    if Fixpoint.fixpoint step 1. <> float n then Bench.fail "wrong fixpoint"
  done

let depths = [ 1; 2; 5; 10; 100; 1000 ]

let counted () =
  List.iter
    (fun n ->
      Bench.operation ~mode:"count" ~seconds:0. ~chunk:1 ~count:(1000 / n) ~per:1 (Printf.sprintf "N=%d" n)
        (computations n))
    depths

let timed () =
  let seconds = float_of_string (Bench.argument 1 ~default:"0.03") and measurements = Bench.int_argument 2 ~default:5 in
  let domains = Bench.int_argument 3 ~default:1 in
  let clock () = if domains = 1 then Bench.cpu () else Bench.thread_cpu () in
  let median_ns n =
    computations n 1;
    Bench.median (List.init measurements (fun _ ->
      Bench.ns_per_operation ~clock ~seconds ~chunk:(1 + (20_000 / n)) (computations n)))
  in
  let found = Array.make domains [] in
  Domains.copies domains (fun i -> found.(i) <- List.map median_ns depths);
  let mean k = Array.fold_left (fun sum ns -> sum +. List.nth ns k) 0. found /. float domains in
  List.iteri (fun k n -> Bench.metric (Printf.sprintf "N=%d" n) (mean k) "ns") depths

let () = if Bench.argument 1 ~default:"" = "count" then counted () else timed ()
