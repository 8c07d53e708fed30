(* SPDX-License-Identifier: MIT *)
(* What does an idle processor give?  helper KIND BUSY [lanes]
   graph    300,000 nodes with four random edges each; nodes are replaced, and edges changed
   table    a hash table of 500,000 strings, of which one is replaced in each step
   map      a persistent map of a million entries, of which one is removed and one added in each step
   window   references in a circular array of a million
   lists    lists of a million, mapped and dropped in turn
   major    no steps, but Gc.major and Gc.full_major of a heap of 1 GB
   domains  two domains, a hash table each
   BUSY processes that count keep as many processors busy meanwhile.
   lanes: no times, but what the domain and the helper did in a part of the run (lanes.ml)

   Times are by the wall clock, which is what another processor can save; processor time is that of all threads. *)
module Map = Map.Make (Int)

let kind = Bench.argument 1 ~default:"graph"
let busy = Bench.int_argument 2 ~default:0
let lanes = Bench.argument 3 ~default:"" = "lanes"

(* A process that counts until we have ended, or end it: then its time is known to be ours. *)
let hog () =
  let us = Unix.getpid () in
  match Unix.fork () with
  | 0 ->
      let n = ref 0 in
      while Unix.getppid () = us do
        for _ = 1 to 1_000_000 do
          n := Sys.opaque_identity (!n + 1)
        done
      done;
      Unix._exit 0
  | child -> at_exit (fun () -> Unix.kill child Sys.sigkill; ignore (Unix.waitpid [] child))

(* Numbers that any run and any domain meets in the same order. *)
let numbers seed =
  let s = ref seed in
  fun bound ->
    s := ((!s * 0x5DEECE66D) + 11) land 0xFFFFFFFFFFFF;
    (!s lsr 16) mod bound

type node = { mutable edges : node array; mutable data : int list }

let graph () =
  let random = numbers 1 and size = 300_000 in
  let nodes = Array.init size (fun i -> { edges = [||]; data = [ i ] }) in
  let some () = nodes.(random size) in
  let four () = Array.init 4 (fun _ -> some ()) in
  Array.iter (fun n -> n.edges <- four ()) nodes;
  fun i ->
    nodes.(random size) <- { edges = four (); data = [ i; i + 1 ] };
    let n = some () in
    n.edges.(random 4) <- some ();
    n.data <- [ i ]

let table seed =
  let random = numbers seed and size = 500_000 in
  let t = Hashtbl.create size in
  let add i = Hashtbl.replace t (random size) (string_of_int i ^ " is a string") in
  for i = 0 to size - 1 do
    Hashtbl.replace t i (string_of_int i)
  done;
  add

let map () =
  let random = numbers 3 and size = 1_000_000 in
  let m = ref Map.empty in
  for i = 1 to size do
    m := Map.add i (ref i) !m
  done;
  fun i ->
    m := Map.remove (random (2 * size)) !m;
    m := Map.add (random (2 * size)) (ref i) !m

let window () =
  let size = 1_000_000 in
  let w = Array.init size ref in
  fun i -> w.(i mod size) <- ref i

let lists () =
  let l = ref (List.init 1_000_000 Fun.id) in
  fun i -> l := List.rev (List.rev_map (fun x -> x + i) !l)

(* A step is one call of [f], a sample of [each] calls. *)
let steps ~each count f =
  Steps.start ();
  for i = 1 to count / each do
    for j = 0 to each - 1 do
      f ((i * each) + j)
    done;
    Steps.step ()
  done

let wall name f =
  let from = Bench.wall () in
  f ();
  Bench.metric name (Bench.wall () -. from) "s"

(* From the middle of the run on. *)
let in_lanes ~each count f =
  let i = ref (count / 2) in
  for k = 1 to !i do
    f k
  done;
  let calls = if each = 1 then 1 else 64 * each in
  Lanes.record ~calls (fun () ->
      for _ = 1 to calls do
        incr i;
        f !i
      done)

let timed ~each count f =
  wall "wall" (fun () -> steps ~each count f);
  Bench.metric "longest step" (Steps.quantile false 1.) "ms";
  Bench.metric "99.99 % of the steps" (Steps.quantile false 0.9999) "ms";
  Bench.metric "99.9 % of the steps" (Steps.quantile false 0.999) "ms";
  Steps.distribution ~processor:false "steps"

let stepped ~each count make = (if lanes then in_lanes else timed) ~each count (make ())

let () =
  for _ = 1 to busy do
    hog ()
  done;
  let cpu = Bench.cpu () in
  (match kind with
  | "graph" -> stepped ~each:4 2_000_000 graph
  | "table" -> stepped ~each:4 4_000_000 (fun () -> table 2)
  | "map" -> stepped ~each:4 800_000 map
  | "window" -> stepped ~each:16 40_000_000 window
  | "lists" -> stepped ~each:1 40 lists
  | "domains" ->
      let run seed = Domain.spawn (fun () -> let f = table seed in
        for i = 1 to 2_000_000 do f i done) in
      wall "wall" (fun () -> List.iter Domain.join (List.map run [ 4; 5 ]))
  | "major" ->
      let heads = Heap.build ~words:125_000_000 ~random:true ~irregular:false ~immediates:600 ~statics:0 [| "none" |] in
      Gc.full_major ();
      wall "Gc.major" (fun () -> for _ = 1 to 3 do Gc.major () done);
      wall "Gc.full_major" (fun () -> for _ = 1 to 2 do Gc.full_major () done);
      ignore (Sys.opaque_identity heads)
  | _ -> Bench.fail "no program %s" kind);
  if not lanes then Bench.metric "processor time" (Bench.cpu () -. cpu) "s";
  if not lanes then Bench.metric "peak resident" (Heap.peak_resident ()) "MB"
