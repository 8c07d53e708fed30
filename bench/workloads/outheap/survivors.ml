(* SPDX-License-Identifier: MIT *)
(* Large blocks of which a tenth survives, without compaction: what stays resident. survivors KILOBYTES MEGABYTES *)
let kilobytes = Bench.int_argument 1 ~default:1024
let megabytes = Bench.int_argument 2 ~default:600

let resident () = Heap.megabytes (Bench.resident_bytes ())

(* Other work, while nothing is allocated in their place. *)
let cycles n =
  let last = (Gc.quick_stat ()).major_collections + n in
  while (Gc.quick_stat ()).major_collections < last do ignore (Gc.major_slice 100_000) done

let survivors () =
  let blocks = Array.init (megabytes * 1024 / kilobytes) (fun i -> Array.make (kilobytes * 128) i) in
  Array.iteri (fun i _ -> if Rng.below 10 <> 0 then blocks.(i) <- [||]) blocks;
  blocks

let () =
  let start = Bench.cpu () in
  let blocks = survivors () in
  Bench.metric "building" ((Bench.cpu () -. start) *. 1e3) "ms";
  cycles 8;
  Bench.metric "resident: eight cycles later" (resident ()) "MB";
  let start = Bench.cpu () in
  Gc.full_major ();
  Bench.metric "full major" ((Bench.cpu () -. start) *. 1e3) "ms";
  Bench.metric "resident: after a full major" (resident ()) "MB";
  let live = Array.fold_left (fun n b -> n + (Array.length b * 8)) 0 blocks in
  Bench.metric "in use" (Heap.megabytes live) "MB";
  ignore (Sys.opaque_identity blocks)
