(* SPDX-License-Identifier: MIT *)
(* All kinds of blocks while the helper marks; what is kept is looked at again and again.
     program PART      tree, roots, domains, forks, stops *)
open Effect
open Effect.Deep

type _ Effect.t += Yield : unit Effect.t
type tree = Leaf | Node of { mutable l : tree; v : int; mutable r : tree }

module E = Ephemeron.K1

let rec make d = if d = 0 then Leaf else Node { l = make (d - 1); v = d; r = make (d - 1) }
let rec sum = function Leaf -> 0 | Node n -> sum n.l + n.v + sum n.r
let keep v = ignore (Sys.opaque_identity v)

let tree () =
  let kept = Array.init 64 (fun _ -> make 12) in
  let each = sum kept.(0) in
  for i = 1 to 1000 do
    kept.(i mod 64) <- make 12;
    if i mod 50 = 0 then begin
      assert (Array.for_all (fun t -> sum t = each) kept);
      if i mod 200 = 0 then Gc.compact () else if i mod 100 = 0 then Gc.full_major () else Gc.major ()
    end
  done

(* A thread of the program that waits 10 times. *)
let fiber (waiting : (unit, unit) continuation Queue.t) n =
  match_with
    (fun () ->
      let t = make ((n mod 9) + 1) in
      let s = sum t in
      for _ = 1 to 10 do
        perform Yield;
        assert (sum t = s)
      done)
    ()
    { retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (e : a Effect.t) ->
          match e with Yield -> Some (fun (k : (a, unit) continuation) -> Queue.push k waiting) | _ -> None) }

let finalised = Atomic.make 0

let work n first () =
  let waiting = Queue.create () in
  let kept = Array.init 50 (fun _ -> make 11) in
  let each = sum kept.(0) in
  let keys = Array.init 500 ref in
  let ephemerons = Array.init 500 (fun i -> E.make keys.(i) (ref i)) in
  let lazies = ref [||] in
  for i = 1 to n do
    kept.(i mod 50) <- (if i mod 3 = 0 then kept.(i * 7 mod 50) else make 11);
    fiber waiting i;
    if Queue.length waiting > 300 then
      for _ = 1 to 150 do
        continue (Queue.pop waiting) ()
      done;
    let j = i * 13 mod 500 in
    keys.(j) <- ref i;
    ephemerons.(j) <- E.make keys.(j) (ref i);
    Array.iteri (fun k key -> assert (E.query ephemerons.(k) key = Some (ref !key))) keys;
    Gc.finalise (fun _ -> Atomic.incr finalised) (ref i);
    Gc.finalise_last (fun () -> Atomic.incr finalised) (ref (i + 1));
    if i mod 20 = 0 then lazies := Array.init 100 (fun _ -> lazy (make 3));
    Array.iter (fun l -> assert (sum (Lazy.force l) = 11)) !lazies;
    assert (sum (Marshal.from_string (Marshal.to_string kept.(0) []) 0) = each);
    if i mod 50 = 0 then begin
      Array.iter (fun t -> assert (sum t = each)) kept;
      match Random.int 5 with
      | 0 -> Gc.full_major ()
      | 1 -> Gc.major ()
      | 2 -> Gc.compact ()
      | 3 -> keep (Gc.major_slice 10_000)
      | _ -> Gc.set { (Gc.get ()) with minor_heap_size = 8192 lsl Random.int 4 }
    end;
    if i mod 40 = 0 && first then
      Domain.join
        (Domain.spawn (fun () ->
           let t = make 10 in
           let s = sum t in
           Gc.minor ();
           keep (E.make t t);
           Gc.finalise_last (fun () -> Atomic.incr finalised) t;
           assert (sum t = s)))
  done;
  while not (Queue.is_empty waiting) do
    continue (Queue.pop waiting) ()
  done;
  Array.iter (fun t -> assert (sum t = each)) kept

let domains () =
  let others = List.init 2 (fun _ -> Domain.spawn (work 300 false)) in
  work 300 true ();
  List.iter Domain.join others

let rec numbers n rest = if n = 0 then rest else numbers (n - 1) ((n, string_of_int n) :: rest)
let check l = List.iter (fun (n, s) -> assert (int_of_string s = n)) l

let forks () =
  let l = ref (numbers 200_000 []) in
  for i = 1 to 20 do
    if i mod 5 = 0 then l := numbers 200_000 [];
    match Unix.fork () with
    | 0 ->
      assert (Outheap.helper_spans () = [||]); (* what the parent's did is the parent's *)
      for _ = 1 to 3 do
        let m = numbers 50_000 [] in
        Gc.full_major ();
        check m;
        check !l
      done;
      exit 0
    | child ->
      keep (numbers 100_000 []);
      (match Unix.waitpid [] child with _, WEXITED 0 -> () | _ -> failwith "a child")
  done;
  check !l

let threads () = Array.length (Sys.readdir "/proc/self/task")

(* In the middle of marking. Then there is no such thread, and none comes back. *)
let stops () =
  let l = ref (numbers 300_000 []) in
  let before = ref 0 in
  for i = 1 to 30 do
    l := numbers 100_000 !l;
    if i mod 10 = 0 then l := numbers 100_000 [];
    if i = 15 then begin
      Outheap.stop_helper ();
      before := threads ();
      Outheap.stop_helper ()
    end;
    check !l
  done;
  Gc.full_major ();
  check !l;
  assert (threads () = !before)

(* References that are replaced in order; the helper does what it has to do in between. How many cycles that takes. *)
let window () =
  let size = 1_000_000 in
  let w = Array.init size ref in
  Gc.full_major ();
  let cycles () = (Gc.quick_stat ()).major_collections in
  let before = cycles () in
  for i = 1 to 12_000_000 do
    w.(i mod size) <- ref i;
    if i mod 20_000 = 0 then Clock.settle ()
  done;
  Printf.printf "cycles %d\n" (cycles () - before)

let () =
  (match Sys.argv.(1) with
   | "tree" -> tree ()
   | "roots" -> work 400 true ()
   | "domains" -> domains ()
   | "forks" -> forks ()
   | "stops" -> stops ()
   | "window" -> window ()
   | name -> failwith name);
  print_endline "good"
