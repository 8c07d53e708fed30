(* SPDX-License-Identifier: MIT *)
(* Many values with the same hash: a search compares each once, whatever happens during it. *)
open Hashcons_checks

type node = { group : int; number : int }

(* What `equal` does first, with the node in the table. *)
let first = ref (fun (_ : node) -> ())
let nothing (_ : node) = ()

module T = Hashcons.Make (struct
  type t = node

  let equal a b =
    !first a;
    a.group = b.group && a.number = b.number

  let hash n = n.group
end)

let make t group number = T.hashcons t { group; number }
let add t group number = ignore (opaque (make t group number))
let fill t group n = List.init n (make t group)

(* The time of a search is in proportion to what it compares. *)
let quadratic () =
  let time n =
    let once () =
      let t = T.create 1 in
      let start = Sys.time () in
      ignore (opaque (fill t 1 n));
      Sys.time () -. start
    in
    List.fold_left (fun least _ -> min least (once ())) infinity [ 1; 2; 3 ]
  in
  let few = time 400 in
  let many = time 1600 in
  (* 16 times as long; 64 times as long if it begins again for each *)
  check (Printf.sprintf "400 equal hashes: %.4f s, 1600: %.4f s" few many) (many < (36. *. few) +. 0.02)

exception Twice

(* Looks up nodes that are new, and one that is there; `during` is called at one comparison of each search, or at
   all. *)
let each_once (what, always, during) =
  let check text = check (what ^ ": " ^ text) in
  let n = 20 in
  let t = T.create 1 in
  let early = ref (fill t 1 30) in
  let held = List.init n (fun i -> make t 1 (1000 + i)) in
  (* room in front of those that are held *)
  check "filled" (List.length (opaque !early) = 30);
  early := [];
  majors 2;
  for round = 0 to 2 * n do
    let compared = Hashtbl.create 50 in
    let rec compare a =
      if Hashtbl.mem compared a then raise Twice;
      Hashtbl.add compared a ();
      if always || Hashtbl.length compared = 1 + (round / 2) then (
        first := nothing;
        during t round (Hashtbl.length compared);
        first := compare)
    in
    let is_new = round land 1 = 0 in
    let node = { group = 1; number = (if is_new then 5000 + round else 1000 + n - 1) } in
    first := compare;
    (match T.hashcons t node with
    | exception Twice -> check "compared twice" false
    | c ->
        first := nothing;
        check "found again" (T.hashcons t node == c && c.node = node);
        if what <> "clear" then
          if is_new then List.iter (fun v -> check "left out" (Hashtbl.mem compared v.Hashcons.node)) held
          else check "the same" (c == List.nth held (n - 1)));
    first := nothing;
    validate what
  done;
  let seen = Hashtbl.create 100 in
  T.iter (fun c -> check "one value" (not (Hashtbl.mem seen c.node)); Hashtbl.add seen c.node ()) t;
  ignore (opaque held)

let crowded () =
  let fresh round i = 10_000 + (1000 * round) + i in
  let some t n round = for i = 1 to n do add t 1 (fresh round i) done in
  let others t n round = for i = 1 to n do add t (fresh round i) i done in
  List.iter each_once
    [
      ("nothing", false, fun _ _ _ -> ());
      ("one more", false, fun t round _ -> some t 1 round);
      ("five more", false, fun t round _ -> some t 5 round);
      (* the table grows *)
      ("sixty more", false, fun t round _ -> some t 60 round);
      ("others", false, fun t round _ -> others t 200 round);
      (* and shrinks *)
      ("others that end", false, fun t round _ -> others t 300 round; majors 2);
      ("another at each comparison", true, fun t round i -> add t (fresh round i) i);
      ("collections", false, fun _ _ _ -> majors 1);
      ( "parts of collections",
        false,
        fun t round _ ->
          Gc.full_major ();
          if off_heap then slice (round * 3);
          some t 1 round );
      ("clear", false, fun t round _ -> T.clear t; some t 3 round);
      ("the same node", false, fun t round _ -> add t 1 (5000 + round));
      ("it has just come in front", false, fun t round _ -> some t 2 round; add t 1 (5000 + round));
    ]

(* Other domains make values in the same table all the time: that delays a search, which does not begin again. *)
let busy () =
  let t = T.create 1 and n = 300 and me = Hashcons_domains.self () in
  let held = fill t 1 n and stop = Atomic.make false and calls = ref 0 in
  (first :=
     fun _ ->
       if Hashcons_domains.self () = me then (
         incr calls;
         if !calls land 63 = 0 then Thread.yield ();
         if !calls > 100 * n then failwith "it begins again"));
  let work number () =
    let i = ref 0 in
    while (not (Atomic.get stop)) && !i < 2_000_000 do
      incr i;
      (* now and then with the same hash *)
      add t (if !i land 0x3fff = 0 then 1 else 2 + (!i land 0xffff)) ((number * 10_000_000) + !i)
    done
  in
  let domains = if Hashcons_domains.several = 1 then 0 else 3 in
  let running = List.init domains (fun i -> Hashcons_domains.spawn (work (1 + i))) in
  for i = 1 to 20 do
    calls := 0;
    match make t 1 (5000 + i) with
    | v -> check "new" (v.node.number = 5000 + i)
    | exception Failure m -> check m false
  done;
  Atomic.set stop true;
  List.iter (fun wait -> wait ()) running;
  first := nothing;
  List.iteri (fun i v -> check "the same" (make t 1 i == v)) held;
  validate "busy"

(* --- the hash of the polymorphic interface ------------------------------------------------------------------------ *)

let hash_of d = (Hashcons.hashcons (Hashcons.create 1) d).hkey

type 'a record = { first : int; second : int; third : 'a; rest : 'a list }
type 'a term = { hkey : int; tag : int; node : 'a }
type shape = Leaf of string | Branch of shape * shape

let rec branch depth name = if depth = 0 then Leaf name else Branch (branch (depth - 1) "same", branch (depth - 1) name)

(* Few of the hashes of values that differ are equal. *)
let strength () =
  let n = 200 in
  let name i = "name " ^ string_of_int i in
  let differ what make =
    let hashes = List.sort_uniq compare (List.init n (fun i -> hash_of (make i))) in
    check (Printf.sprintf "%s: %d hashes of %d" what (List.length hashes) n) (List.length hashes > n * 9 / 10)
  in
  differ "the last of 50" (fun i -> List.init 50 (fun j -> if j = 49 then i else j));
  differ "the last of 50 strings" (fun i -> List.init 50 (fun j -> if j = 49 then name i else "same"));
  differ "the last of 12 records" (fun i ->
      List.init 12 (fun j -> { first = 1; second = 2; third = 3; rest = (if j = 11 then [ i ] else []) }));
  differ "arrays" (fun i -> Array.init 60 (fun j -> if j = 45 then i else 0));
  differ "arrays of floats" (fun i -> Array.init 60 (fun j -> if j = 45 then float i else 0.));
  differ "the last of 1000" (fun i -> Array.init 1000 (fun j -> if j = 999 then i else 0));
  differ "long arrays" (fun i -> Array.init 10_000 (fun j -> j * i));
  differ "lengths" (fun i -> Array.make (1000 + i) 0);
  differ "lengths of floats" (fun i -> Array.make (1000 + i) 0.);
  differ "trees" (fun i -> branch 5 (name i));
  differ "polymorphic variants" (fun i -> [ `A 1; `B (2, 3); `C (`D, [| 1; 2 |], `E (Some i)) ]);
  differ "what looks hash-consed" (fun i -> { hkey = 1; tag = 2; node = name i });
  differ "a list of that" (fun i -> List.init 50 (fun j -> (j, 7, if j = 0 then name i else "same")));
  differ "numbers in a row" Fun.id;
  differ "pairs" (fun i -> (i mod 14, i / 14));
  differ "pairs the other way round" (fun i -> (i / 14, i mod 14));
  differ "in 64 bits" (fun i -> Int64.mul (Int64.of_int i) 0x1_0000_0001L)

(* A term's hash does not depend on how much lies below it. *)
let shallow () =
  let t = Hashcons.create 1 in
  let rec grow n (v : Obj.t) =
    if n = 0 then v else grow (n - 1) (Obj.repr (Hashcons.hashcons t (Obj.repr (v, v))))
  in
  (* 2^60 leaves, if it were followed *)
  ignore (opaque (hash_of (grow 60 (Obj.repr 1), 2)))

(* What `compare` finds equal has one hash. *)
let consistent () =
  let same what a b =
    check (what ^ ": not equal") (compare a b = 0);
    let t = Hashcons.create 1 in
    let v = Hashcons.hashcons t a in
    check (what ^ ": hashes differ") (Hashcons.hashcons t b == v)
  in
  let copy d = Marshal.from_string (Marshal.to_string d []) 0 in
  let both what d = same what d (copy d) in
  both "list" (List.init 300 string_of_int);
  both "term" { hkey = 5; tag = 3; node = [ "a"; "b" ] };
  same "nan" (opaque nan) (opaque (Int64.float_of_bits 0xfff8_0000_0000_0001L));
  same "zero" (opaque 0.) (opaque (-0.));
  same "floats" [| nan; 0.; 1. |] [| Int64.float_of_bits 0x7ff0_0000_0000_0003L; -0.; 1. |];
  both "empty" ([||], "", [ [||] ]);
  both "boxed" (5L, 6l, 7n, [ 8L ]);
  (* a hash-consed value, and a copy of it in the heap *)
  let t = Hashcons.create 1 in
  let part = Hashcons.hashcons t (Some "part") in
  both "with a value of a table" (Some part, [ part ]);
  if off_heap then
    match Outheap_region.copy (List.init 100 string_of_int) with
    | Ok r -> same "region" (1, Outheap_region.get r) (1, List.init 100 string_of_int)
    | Error e -> check (Outheap_region.error_to_string e) false
  else (
    let l = lazy (opaque "forced") in
    ignore (Lazy.force l);
    same "forced" (1, l) (1, Lazy.from_val "forced"));
  let rec endless = 1 :: 2 :: endless in
  ignore (opaque (hash_of endless))

let hashes () =
  strength ();
  shallow ();
  consistent ();
  validate "hashes"
