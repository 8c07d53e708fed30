(* SPDX-License-Identifier: MIT *)
(* Memory of a process whose heap of MEGABYTES grows and shrinks: built of two kinds of blocks, in turn; all of one kind
   freed, Gc.compact; the others freed, Gc.compact; built again, half of either kind freed at random, Gc.compact.
   compaction MEGABYTES *)
let megabytes = Bench.int_argument 1 ~default:500

(* Once in a while a block that is too large for the pools of OCaml 5: a word in fifteen. *)
let block i fields = Array.make (if i mod 1600 = 0 then 100 + Rng.below 1700 else fields) i

(* words for each: blocks of 7 and of 8 words, 1.2 of large ones, 2 in the arrays *)
let slots = megabytes * 1_000_000 / 8 / 18

let step name f =
  let start = Bench.cpu () in
  f ();
  Bench.metric ("time: " ^ name) ((Bench.cpu () -. start) *. 1e3) "ms";
  Bench.metric ("resident: " ^ name) (Heap.megabytes (Bench.resident_bytes ())) "MB";
  Bench.metric ("mappings: " ^ name) (float (Heap.mappings ())) "";
  Bench.metric ("huge: " ^ name) (Heap.megabytes (Heap.huge_bytes ())) "MB"

let () =
  let kept = Array.make slots [||] and dropped = Array.make slots [||] in
  let build () =
    for i = 0 to slots - 1 do
      kept.(i) <- block i 6;
      dropped.(i) <- block (i + 800) 7
    done
  in
  let free a = Array.fill a 0 slots [||] in
  let thin a = Array.iteri (fun i _ -> if Rng.chance 0.5 then a.(i) <- [||]) a in
  step "built" build;
  step "half freed" (fun () -> free dropped; Gc.full_major ());
  step "compacted" Gc.compact;
  step "all freed, compacted" (fun () -> free kept; Gc.compact ());
  step "built again" build;
  step "half of each kind, compacted" (fun () -> thin kept; thin dropped; Gc.compact ());
  ignore (Sys.opaque_identity (kept, dropped));
  Bench.gc_metrics ()
