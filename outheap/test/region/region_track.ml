(* SPDX-License-Identifier: MIT *)
(* Regions that are written to: what is stored there stays as it is. Parts pass at once with a runtime that does not
   track. *)
open Outheap_region
open Region_checks

let track ?closures v = copy ?closures ~writes:`Track v
let can_track = match track 1 with Ok r -> ok "delete" (delete (region r)); true | Error _ -> false
let tracked r = (info (region r)).tracked

(* Ends what the caller has just written down, and lets blocks be used again for something else. *)
let disturb () =
  Gc.full_major ();
  for i = 1 to 2000 do
    ignore (opaque (Array.make (1 + (i mod 40)) (string_of_int i)))
  done;
  Gc.minor ()

type cell = { mutable text : string; mutable many : string list; mutable next : cell option; number : int Atomic.t }

(* --- random writes beside a model in the heap --- *)

type tree = Leaf | Node of { mutable left : tree; mutable right : tree; mutable words : string array; key : int }

let words n = Array.init (n land 7) (fun i -> String.make (1 + ((n + i) mod 30)) (Char.chr (97 + (n mod 26))))

let rec build depth key =
  if depth = 0 then Leaf
  else Node { left = build (depth - 1) (2 * key); right = build (depth - 1) ((2 * key) + 1); words = words key; key }

(* One step at random, which is the same in both: with values that are equal, but not the same. *)
let rec step depth a b =
  match (a, b) with
  | Node x, Node y when depth > 0 && Random.int 8 > 0 ->
      if Random.bool () then step (depth - 1) x.left y.left else step (depth - 1) x.right y.right
  | Node x, Node y -> (
      let n = Random.bits () in
      match Random.int 9 with
      | 0 ->
          x.words <- words n;
          y.words <- words n
      | 1 ->
          let d = Random.int 3 in
          x.left <- build d n;
          y.left <- build d n
      | 2 -> x.right <- Leaf; y.right <- Leaf
      | 3 ->
          let t = x.left in
          x.left <- x.right; x.right <- t;
          let t = y.left in
          y.left <- y.right; y.right <- t
      | 4 when Array.length x.words > 0 ->
          let i = Random.int (Array.length x.words) in
          x.words.(i) <- string_of_int n;
          y.words.(i) <- string_of_int n
      | 5 ->
          Array.fill x.words 0 (Array.length x.words) (string_of_int n);
          Array.fill y.words 0 (Array.length y.words) (string_of_int n)
      | 6 when Array.length x.words > 1 ->
          Array.blit x.words 0 x.words 1 (Array.length x.words - 1);
          Array.blit y.words 0 y.words 1 (Array.length y.words - 1)
      | 7 -> x.words <- [||]; y.words <- [||]
      | _ ->
          x.right <- build 1 n;
          y.right <- build 1 n)
  | _ -> ()

let rec same a b =
  match (a, b) with
  | Leaf, Leaf -> true
  | Node x, Node y -> x.key = y.key && x.words = y.words && same x.left y.left && same x.right y.right
  | _ -> false

let writes () =
  if can_track then
    for seed = 1 to 12 do
      Random.init seed;
      let model = build 9 1 in
      let r = ok "copy" (track model) and ballast = Array.make 5000 [||] in
      for round = 1 to 30 do
        for _ = 1 to 300 do
          step (Random.int 11) model (get r);
          ballast.(Random.int 5000) <- words (Random.bits ())
        done;
        (match Random.int 6 with
        | 0 -> Gc.compact ()
        | 1 -> Gc.minor ()
        | 2 -> disturb ()
        | 3 -> slice 1000
        | _ -> ());
        check (Printf.sprintf "as the model, seed %d, round %d" seed round) (same model (get r))
      done;
      Gc.compact ();
      check "after compaction" (same model (get r));
      let again = ok "copy" (copy (get r)) in
      check "a copy of it" (same model (get again))
    done

(* --- each way to write --- *)

let fresh n = [ String.make 10 (Char.chr (97 + (n mod 26))); string_of_int n ]

let ways () =
  if can_track then (
    let c = { text = "a"; many = []; next = None; number = Atomic.make 0 } in
    let atomics = (Atomic.make [], Atomic.make [], Atomic.make []) in
    let r = ok "copy" (track (c, Array.make 50 [], atomics, Hashtbl.create 3, ref [])) in
    let c, a, (atomic, compared, exchanged), table, reference = get r in
    c.next <- Some c;
    check "one word" (tracked r = 1);
    for n = 1 to 40 do
      c.many <- fresh n;
      a.(n) <- fresh n;
      Array.fill a 0 1 (fresh n);
      Atomic.set atomic (fresh n);
      let seen = Atomic.get compared in
      check "compare and set" (Atomic.compare_and_set compared seen (fresh (n + 1)));
      ignore (Atomic.exchange exchanged (fresh (n + 2)));
      ignore (Atomic.fetch_and_add c.number 1);
      Hashtbl.replace table n (fresh n);
      reference := fresh n :: !reference;
      if n mod 3 = 0 then disturb ();
      if n mod 10 = 0 then Gc.compact ();
      check "field" (c.many = fresh n);
      check "array" (a.(n) = fresh n && a.(n / 2) = (if n < 2 then fresh n else fresh (n / 2)));
      check "fill" (a.(0) = fresh n || n < 2);
      check "set" (Atomic.get atomic = fresh n);
      check "compared" (Atomic.get compared = fresh (n + 1));
      check "exchanged" (Atomic.get exchanged = fresh (n + 2));
      check "table" (Hashtbl.length table = n && Hashtbl.find table 1 = fresh 1);
      check "reference" (List.length !reference = n && List.nth !reference (n - 1) = fresh 1)
    done;
    check "number" (Atomic.get c.number = 40);
    (* what holds no pointer any more is dropped *)
    Array.fill a 0 50 [];
    reference := [];
    Hashtbl.reset table;
    Atomic.set atomic [];
    Atomic.set compared [];
    Atomic.set exchanged [];
    c.many <- [];
    let before = tracked r in
    majors 2;
    check (Printf.sprintf "dropped: %d, then %d" before (tracked r)) (before > 40 && tracked r < 25))

(* Old values of the heap, each of which only one word of a region holds: a word that is not visited loses it. *)
let old_values handle =
  let n = 20_000 in
  let r = ref (Some (ok "copy" (track (Array.make n "")))) in
  let a = get (Option.get !r) in
  if not handle then r := None;
  let made = Array.init n (fun i -> "value " ^ string_of_int i) in
  Gc.full_major ();
  Array.iteri (fun i s -> if i mod 3 <> 1 then a.(i) <- s) made;
  Array.fill made 0 n "";
  for round = 1 to 4 do
    disturb ();
    if round land 1 = 0 then Gc.compact ();
    let good = ref true in
    Array.iteri (fun i s -> if s <> if i mod 3 <> 1 then "value " ^ string_of_int i else "" then good := false) a;
    check (Printf.sprintf "old values, round %d" round) !good
  done;
  Option.iter (fun r -> check "words" (tracked r = n - ((n + 1) / 3))) !r

let old () =
  if can_track then (
    old_values true;
    old_values false)

(* --- lazy values --- *)

let lazies () =
  let forced = ref 0 in
  let make n = lazy (incr forced; List.init n string_of_int) in
  let l = (make 5, make 7, lazy (failwith "no"), lazy (opaque 2.5)) in
  (match copy ~writes:`Track l with
  | Error (Refused { kind = "lazy"; _ }) -> ()
  | Error (Unsupported _) -> check "unsupported" (not can_track)
  | r -> check ("a lazy value: " ^ show r) false);
  is_error "read-only" (function Error (Refused { kind = "lazy"; _ }) -> true | _ -> false) (copy ~closures:true l);
  if can_track then (
    (* the counter is a part of the copy *)
    let count = ref 0 in
    let l = lazy (incr count; List.init 5 string_of_int) and bad = lazy (incr count; failwith "no") in
    let r = ok "lazy" (track ~closures:true (l, bad, count, lazy (opaque 2.5))) in
    let l', bad', count', f = get r in
    disturb ();
    check "forced in place" (List.length (Lazy.force l') = 5 && Lazy.is_val l' && not (Lazy.is_val l));
    for _ = 1 to 2 do
      match Lazy.force bad' with _ -> check "raises" false | exception Failure _ -> ()
    done;
    disturb ();
    Gc.compact ();
    check "its value" (Lazy.force l' = [ "0"; "1"; "2"; "3"; "4" ] && Lazy.force f = 2.5);
    (match Lazy.force bad' with _ -> check "raises again" false | exception Failure _ -> ());
    check "forced once" (!count' = 2 && !count = 0))

(* --- what is refused, saved, mapped --- *)

let schema : string list ref list schema = schema ~name:"tracked" ~version:1

let tracked_images () =
  let path = Filename.temp_file "region" ".image" in
  let source = List.init 1000 (fun i -> ref [ string_of_int i ]) in
  ok "save" (save schema ~path source);
  (match map schema ~path ~writes:`Track () with
  | Error (Unsupported _) ->
      check "map: unsupported" (not can_track);
      is_error "copy" (function Error (Unsupported _) -> true | _ -> false) (track [ 1 ])
  | Error e -> check (error_to_string e) false
  | Ok a ->
      let b = ok "map twice" (map schema ~path ~writes:`Track ~verify:`Full ()) in
      let plain = ok "map" (map schema ~path ()) in
      let places = List.map (fun r -> address (Obj.repr (get r))) [ a; b; plain ] in
      check "three places" (List.length (List.sort_uniq compare places) = 3);
      List.iteri (fun i x -> x := string_of_int (i + 1) :: !x) (get a);
      disturb ();
      Gc.compact ();
      List.iteri (fun i x -> check "written" (!x = [ string_of_int (i + 1); string_of_int i ])) (get a);
      check "the others stay" (get b = source && get plain = source);
      is_error "needs"
        (function Error (Unsupported _) -> true | _ -> false)
        (save schema ~needs:[ region a ] ~path source);
      let other = path ^ ".2" in
      ok "save what was written" (save schema ~path:other (get a));
      let c = ok "map that" (map schema ~path:other ~verify:`Full ()) in
      check "saved as it is" (get c = get a);
      Sys.remove other);
  Sys.remove path;
  is_error "`Max" (function Error (Unsupported _) -> true | _ -> false) (copy ~sharing:`Max ~writes:`Track [ 1 ]);
  is_error "channel"
    (function Error (Refused { kind = "custom"; _ } | Unsupported _) -> true | _ -> false)
    (track stdout)
