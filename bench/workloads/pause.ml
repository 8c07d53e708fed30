(* SPDX-License-Identifier: MIT *)
(* pause: many live values, held by roots in a C array (or by an OCaml list or array), under a mutator that allocates.
   Reports the pauses that the mutator sees, the time of a full major collection, and what the heap and the process grow
   by. Arguments: number of values, shuffled|sequential, major cycles to run. *)

let megabytes words = float (words * 8) /. 1e6
let heap_words () = (Gc.quick_stat ()).heap_words

(* Holds [count] small blocks, allocated one after the other. Shuffled: in an order that has nothing to do with their
   addresses. *)
let fill count ~shuffled =
  Bag.create count;
  let values = Array.init count (fun i -> ref i) in
  if shuffled then Rng.shuffle values;
  Gc.full_major ();
  let before = Bench.resident_bytes () in
  let start = Bench.cpu () in
  for i = 0 to count - 1 do
    Bag.add (Array.unsafe_get values i)
  done;
  Bench.metric "create" ((Bench.cpu () -. start) *. 1e9 /. float count) "ns";
  Bench.metric "memory per root" (float (Bench.resident_bytes () - before) /. float count) "B"

let full_major () =
  let times =
    List.init 3 (fun _ ->
        let start = Bench.cpu () in
        Gc.full_major ();
        (Bench.cpu () -. start) *. 1e3)
  in
  Bench.metric "full major" (Bench.median times) "ms"

(* The mutator: a window of small lists, each replaced at random, so that most of what is allocated is promoted and dies
   later. *)
let window = Array.make 65_536 []

let allocate lists =
  for _ = 1 to lists do
    let n = Rng.next () in
    window.(n land 65_535) <- [ n; n; n ]
  done

let mutate cycles =
  let finish = (Gc.quick_stat ()).major_collections + cycles in
  let peak = ref (heap_words ()) and steps = ref 0 and over = ref false in
  Steps.start ();
  while not !over do
    allocate 128;
    Steps.step ();
    incr steps;
    if !steps land 127 = 0 then begin
      let s = Gc.quick_stat () in
      if s.heap_words > !peak then peak := s.heap_words;
      over := s.major_collections >= finish;
      Steps.resume ()
    end
  done;
  !peak

let () =
  let count = Bench.int_argument 1 ~default:1_000_000 in
  let shuffled = Bench.argument 2 ~default:"shuffled" = "shuffled" in
  let cycles = Bench.int_argument 3 ~default:10 in
  fill count ~shuffled;
  allocate 1_000_000;
  full_major ();
  let before = heap_words () in
  let start = Bench.cpu () in
  let peak = mutate cycles in
  Steps.metrics "pause";
  Steps.distribution "pauses";
  Bench.metric "mutator time per cycle" ((Bench.cpu () -. start) *. 1e3 /. float cycles) "ms";
  Bench.metric "heap at start" (megabytes before) "MB";
  Bench.metric "peak heap" (megabytes peak) "MB";
  Bench.metric "heap growth" (float peak /. float before) "";
  Bench.metric "top heap" (megabytes (Gc.quick_stat ()).top_heap_words) "MB";
  Bench.metric "resident" (float (Bench.resident_bytes ()) /. 1e6) "MB"
