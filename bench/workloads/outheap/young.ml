(* SPDX-License-Identifier: MIT *)
(* Programs whose best minor heap is not that of others.   young STEP SECONDS-WORTH
     stores   new values are stored into old blocks, scattered: what fills first is the remembered set
     bursts   small lists that die at once: the smaller the minor heap, the more of it the caches hold
     cache    a table with the most recently used of many keys: what is stored lives long enough to be promoted, and
              dies later. Reports the pauses that its requests see *)
let step = Bench.argument 1 ~default:"cache"
let amount = Bench.int_argument 2 ~default:10

let stores () =
  let cells = Array.init 500_000 (fun i -> ref (string_of_int i)) in
  Gc.full_major ();
  fun () ->
    for i = 1 to 300_000 do
      cells.(Rng.below 500_000) := (if i land 1 = 0 then "even" else String.make 7 'o')
    done

let rec upto n l = if n = 0 then l else upto (n - 1) (n :: l)

let bursts () () =
  for i = 1 to 3_000 do
    let l = List.rev_map (fun n -> n + i) (upto 500 []) in
    if List.fold_left ( + ) 0 l <> 125_250 + (500 * i) then Bench.fail "the sum of a list"
  done

(* Most recently used first, in a ring. *)
type entry = { key : int; mutable text : string; mutable before : entry; mutable next : entry }

let cache () =
  let rec ring = { key = -1; text = ""; before = ring; next = ring } in
  let room = 200_000 and table = Hashtbl.create 200_000 in
  let leave e =
    e.before.next <- e.next;
    e.next.before <- e.before
  and enter e =
    e.before <- ring;
    e.next <- ring.next;
    ring.next.before <- e;
    ring.next <- e
  in
  let request () =
    let key = if Rng.chance 0.5 then Rng.below 50_000 else Rng.below 2_000_000 in
    match Hashtbl.find_opt table key with
    | Some e ->
      leave e;
      enter e
    | None ->
      if Hashtbl.length table = room then begin
        Hashtbl.remove table ring.before.key;
        leave ring.before
      end;
      let e = { key; text = String.make 64 (Char.chr (key land 127)); before = ring; next = ring } in
      Hashtbl.add table key e;
      enter e
  in
  for _ = 1 to 600_000 do request () done;
  Steps.start ();
  fun () ->
    for _ = 1 to 10_000 do
      for _ = 1 to 10 do request () done;
      Steps.step ()
    done

let () =
  let run =
    match step with
    | "stores" -> stores ()
    | "bursts" -> bursts ()
    | "cache" -> cache ()
    | step -> Bench.fail "no step %s" step
  in
  let start = Bench.cpu () in
  for _ = 1 to amount do run () done;
  Bench.metric "time" (Bench.cpu () -. start) "s";
  if step = "cache" then Steps.metrics "pause";
  Bench.metric "peak resident" (Heap.peak_resident ()) "MB";
  Bench.gc_metrics ()
