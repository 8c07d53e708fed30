(* SPDX-License-Identifier: MIT *)
(* Arrays that come and go: each of FROM to TO kilobytes takes the place of another one, chosen at random, with LIVE
   megabytes in all. turnover FROM TO LIVE COUNT *)
let smallest = Bench.int_argument 1 ~default:100
let largest = Bench.int_argument 2 ~default:16_000
let live = Bench.int_argument 3 ~default:200
let count = Bench.int_argument 4 ~default:500

let () =
  let slots = Array.make (max 4 (live * 2000 / (smallest + largest))) [||] in
  let fill n =
    for _ = 1 to n do
      let kilobytes = smallest + Rng.below (largest - smallest + 1) in
      slots.(Rng.below (Array.length slots)) <- Array.make (kilobytes * 128) 0
    done
  in
  fill (Array.length slots);
  let start = Bench.cpu () in
  fill count;
  Bench.metric "time per array" ((Bench.cpu () -. start) *. 1e6 /. float count) "us";
  Bench.metric "resident" (Heap.megabytes (Bench.resident_bytes ())) "MB";
  Gc.compact ();
  Bench.metric "resident: compacted" (Heap.megabytes (Bench.resident_bytes ())) "MB";
  ignore (Sys.opaque_identity slots);
  Bench.gc_metrics ()
