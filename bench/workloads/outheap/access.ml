(* SPDX-License-Identifier: MIT *)
(* Random reads of MEGABYTES of memory in small pages and in huge ones: what huge pages give without any runtime.
   access MEGABYTES *)
external times : int -> bool -> float * float = "access_times"

let megabytes = Bench.int_argument 1 ~default:800

let () =
  let dependent, ahead = times megabytes false in
  let dependent_huge, ahead_huge = times megabytes true in
  Bench.metric "each after the last: small pages" dependent "ns";
  Bench.metric "each after the last: huge pages" dependent_huge "ns";
  Bench.metric "each after the last: ratio" (dependent_huge /. dependent) "";
  Bench.metric "fetched ahead: small pages" ahead "ns";
  Bench.metric "fetched ahead: huge pages" ahead_huge "ns";
  Bench.metric "fetched ahead: ratio" (ahead_huge /. ahead) ""
