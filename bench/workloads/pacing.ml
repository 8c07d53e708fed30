(* SPDX-License-Identifier: MIT *)
(* pacing: how far the GC lets the heap grow beside many roots. A number of roots, of which a share hold immediates and
   the others a small block each, and a window of small lists, each replaced at random while the program allocates so
   many words. Reports the peak of the OCaml heap, also as a multiple of what is alive, the number of major cycles,
   processor time, and pauses.
   Arguments: roots, share of immediates (percent), words of the window, space_overhead (0: as it is), millions of words
   to allocate. *)

let list_words = 9
let heap_words () = (Gc.quick_stat ()).heap_words

let () =
  let roots = Bench.int_argument 1 ~default:5_000_000 in
  let immediates = Bench.int_argument 2 ~default:100 in
  let window_words = Bench.int_argument 3 ~default:20_000 in
  let overhead = Bench.int_argument 4 ~default:0 in
  let allocation = Bench.int_argument 5 ~default:200 * 1_000_000 in
  if overhead > 0 then Gc.set { (Gc.get ()) with space_overhead = overhead };
  Slots.make roots;
  for i = 0 to roots - 1 do
    if Rng.below 100 < immediates then Slots.create i i else Slots.create i (ref i)
  done;
  let window = Array.make (max 1 (window_words / (list_words + 1))) [] in
  let replace i = window.(i) <- [ i; i; i ] in
  for i = 0 to Array.length window - 1 do
    replace i
  done;
  let allocate lists =
    for _ = 1 to lists do
      replace (Rng.below (Array.length window))
    done
  in
  Gc.full_major ();
  let live = (Gc.stat ()).live_words in
  let control = Gc.get () in
  let promised = (float live *. (1. +. (float control.space_overhead /. 100.))) +. float control.minor_heap_size in
  let before = Gc.quick_stat () in
  let start = Bench.cpu () in
  let peak = ref before.heap_words and steps = allocation / list_words / 128 in
  Steps.start ();
  for step = 1 to steps do
    allocate 128;
    Steps.step ();
    if step land 63 = 0 then begin
      peak := max !peak (heap_words ());
      Steps.resume ()
    end
  done;
  let time = Bench.cpu () -. start in
  let after = Gc.quick_stat () in
  Bench.metric "time" time "s";
  Bench.metric "peak heap" (float !peak /. 1e6) "Mwords";
  Bench.metric "peak heap, of what space_overhead promises" (float !peak /. promised) "";
  Bench.metric "major cycles" (float (after.major_collections - before.major_collections)) "";
  Steps.metrics "pause";
  Bench.metric "gc: live" (float live /. 1e6) "Mwords";
  Bench.gc_metrics ()
