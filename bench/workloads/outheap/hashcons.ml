(* SPDX-License-Identifier: MIT *)
(* Hash-consing. Which implementation: BENCH_HASHCONS=cells (Outheap_hashcons), buckets, or weak (Hashcons_rivals).
   hashcons STEP SIZE; hashcons theories FOLDER *)
let step = Sys.argv.(1)
let size () = Bench.int_argument 2 ~default:8

let () =
  let quicksort, pigeons, turnover, theories, groups, tables =
    match Sys.getenv_opt "BENCH_HASHCONS" with
    | Some "cells" ->
        if not Outheap_hashcons.off_heap then Bench.fail "the runtime cannot keep values outside the heap";
        Hashcons_cells.(Lambda.quicksort, Bdd.pigeons, Turnover.run, Theories.run, Crowd.groups, Crowd.tables)
    | Some "buckets" ->
        Hashcons_buckets.(Lambda.quicksort, Bdd.pigeons, Turnover.run, Theories.run, Crowd.groups, Crowd.tables)
    | _ -> Hashcons_weak.(Lambda.quicksort, Bdd.pigeons, Turnover.run, Theories.run, Crowd.groups, Crowd.tables)
  in
  let start = Bench.cpu () in
  (match step with
  | "quicksort" -> quicksort (size ())
  | "pigeons" -> pigeons (size ())
  | "turnover" -> turnover (size ())
  | "groups" -> groups (size ())
  | "tables" -> tables (size ())
  | "theories" -> theories (Bench.argument 2 ~default:"theories/Reals")
  | other -> Bench.fail "no step %s" other);
  Bench.metric "processor time" (Bench.cpu () -. start) "s";
  Bench.metric "peak resident" (Heap.peak_resident ()) "MB"
