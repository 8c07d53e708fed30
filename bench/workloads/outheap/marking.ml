(* SPDX-License-Identifier: MIT *)
(* The time of a major collection of a heap that stays as it is.
   marking MEGABYTES random|sequential regular|irregular IMMEDIATES STATICS REPEATS [count]: shares of fields in
   thousandths *)
let megabytes = Bench.int_argument 1 ~default:800
let random = Bench.argument 2 ~default:"random" = "random"
let irregular = Bench.argument 3 ~default:"regular" = "irregular"
let immediates = Bench.int_argument 4 ~default:600
let statics = Bench.int_argument 5 ~default:70
let repeats = Bench.int_argument 6 ~default:3
let counting = Bench.argument 7 ~default:"" = "count"

let cycles () = (Gc.quick_stat ()).major_collections

(* Seconds of one cycle. Gc.full_major would run three for no other purpose than finalisers. *)
let major () =
  let cycles0 = cycles () and start = Bench.cpu () in
  Gc.major ();
  let stop = Bench.cpu () in
  (stop -. start) /. float (cycles () - cycles0)

let count (roots : Obj.t array) =
  let before = Heap.counters () and cycles0 = cycles () in
  Gc.major ();
  let after = Heap.counters () and n = float (cycles () - cycles0) in
  ignore (Sys.opaque_identity roots);
  let metric name f = Bench.metric name (float (f after - f before) /. n) "words" in
  if after.seen = 0 then Bench.fail "this runtime does not count";
  metric "words seen" (fun c -> c.Heap.seen);
  metric "immediate" (fun c -> c.immediate);
  metric "skipped: young" (fun c -> c.young);
  metric "skipped: static" (fun c -> c.static);
  metric "skipped: foreign" (fun c -> c.foreign);
  Bench.metric "skipped: static, share" (100. *. float (after.static - before.static) /. float
                                         (after.seen - before.seen)) "%";
  Bench.metric "cache lines saved" (float (after.lines - before.lines) /. n) ""

let () =
  Gc.set { (Gc.get ()) with max_overhead = 1_000_000 };
  let start = Bench.cpu () in
  let roots = Heap.build ~words:(megabytes * 1_000_000 / 8) ~random ~irregular ~immediates ~statics Constants.all in
  let building = Bench.cpu () -. start in
  ignore (major ()); (* ends the cycle that building has begun *)
  if counting then count roots
  else begin
    let samples = List.init repeats (fun _ -> major () *. 1e3) in
    Bench.metric "major GC, best" (List.fold_left min infinity samples) "ms";
    Bench.metric "major GC, median" (Bench.median samples) "ms";
    Bench.metric "building" building "s";
    Bench.metric "resident" (Heap.megabytes (Bench.resident_bytes ())) "MB";
    Bench.metric "in huge pages" (Heap.megabytes (Heap.huge_bytes ())) "MB";
    Bench.metric "mappings" (float (Heap.mappings ())) "";
    Bench.gc_metrics ()
  end;
  ignore (Sys.opaque_identity roots)
