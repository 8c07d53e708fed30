(* SPDX-License-Identifier: MIT *)
(* locals: a function of C keeps N values while it runs. Reports the time of a call, with the call from OCaml.
   Arguments: seconds per measurement; measurements of each N (the median counts). *)

let numbers = [ 1; 2; 5; 10; 100; 1000 ]
let calls n count = for _ = 1 to count do Keeper.keep n done

let () =
  let seconds = float_of_string (Bench.argument 1 ~default:"0.03") and measurements = Bench.int_argument 2 ~default:5 in
  let measure n = Bench.ns_per_operation ~clock:Bench.cpu ~seconds ~chunk:(1 + (20_000 / n)) (calls n) in
  List.iter (fun n ->
    calls n 1;
    Bench.metric (Printf.sprintf "N=%d" n) (Bench.median (List.init measurements (fun _ -> measure n))) "ns") numbers
