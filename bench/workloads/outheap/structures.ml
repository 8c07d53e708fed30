(* SPDX-License-Identifier: MIT *)
(* The time of a major collection of a heap that stays as it is, made by OCaml code as programs make theirs.
   structures KIND MEGABYTES REPEATS *)
let kind = Bench.argument 1 ~default:"list"
let words = Bench.int_argument 2 ~default:400 * 1_000_000 / 8
let repeats = Bench.int_argument 3 ~default:5

let below = Rng.below

let cycles () = (Gc.quick_stat ()).major_collections

let major () =
  let cycles0 = cycles () and start = Bench.cpu () in
  Gc.major ();
  let stop = Bench.cpu () in
  (stop -. start) /. float (cycles () - cycles0)

(* Pairs of small numbers in a list, made one after the other: 6 words for each. *)
let pairs n =
  let rec go l i = if i = 0 then l else go ((i, i + 1) :: l) (i - 1) in
  go [] (n / 6)

(* Many lists that grow at the same time, in turn: 3 words for an element. *)
let lists n =
  let a = Array.make 1000 [] in
  for i = 1 to n / 3 do
    let k = below 1000 in
    a.(k) <- i :: a.(k)
  done;
  a

(* Syntax trees: variants of several shapes and depths, with names and places, 6 words for a node or so. *)
type tree =
  | Variable of string
  | Number of int
  | Apply of tree * tree list * place
  | Let of string * tree * tree
  | If of tree * tree * tree
  | Tuple of tree array
and place = { line : int; column : int; file : string }

let names = Array.init 997 (Printf.sprintf "name_%d")

let trees n =
  let file = String.make 12 'f' and made = ref 0 in
  let rec tree depth =
    made := !made + 6;
    if depth = 0 then if below 2 = 0 then Number (below 1000) else Variable names.(below 997)
    else
      match below 5 with
      | 0 -> Let (names.(below 997), tree (depth - 1), tree (depth - 1))
      | 1 -> If (tree (depth - 1), tree (depth - 1), tree (depth - 1))
      | 2 -> Tuple (Array.init (1 + below 4) (fun _ -> tree (depth - 1)))
      | 3 -> Number depth
      | _ ->
        Apply (tree (depth - 1), List.init (1 + below 3) (fun _ -> tree (depth - 1)),
               { line = depth; column = below 80; file })
  in
  let rec go l = if !made >= n then l else go (tree 12 :: l) in
  go []

(* A balanced tree over random keys: a map from int to string. *)
module Ints = Map.Make (Int)

let map n =
  let rec go m i = if i = 0 then m else go (Ints.add (below 1_000_000_000) (string_of_int i) m) (i - 1) in
  go Ints.empty (n / 8)

(* A hash table from strings to records, 14 words for an entry or so, filled in random order. *)
let table n =
  let t = Hashtbl.create 1000 in
  for _ = 1 to n / 14 do
    let k = below 1_000_000_000 in
    Hashtbl.replace t (string_of_int k) { line = k; column = 1; file = names.(k mod 997) }
  done;
  t

(* Arrays of 1,000 floats, and of 10 boxed ones. *)
let floats n = Array.init (n / 1000) (fun i -> Array.make 1000 (float i))
let boxed n = Array.init (n / 31) (fun i -> Array.init 10 (fun k -> Some (float (i + k))))

(* Lazy values, of which half, at random, were forced after they had come to the major heap: 12 words for one. *)
let lazies n =
  let a = Array.init (n / 12) (fun i -> lazy (string_of_int (i + below 1000))) in
  Gc.minor ();
  Array.iter (fun l -> if below 2 = 0 then ignore (Lazy.force l)) a;
  a

(* Weak arrays of 10, whose values are alive, some of them in several: 40 words for one. *)
let weak n =
  let values = Array.init (n / 4) (fun i -> ref i) in
  let weak = Array.init (n / 40) (fun _ ->
    let w = Weak.create 10 in
    for k = 0 to 8 do Weak.set w k (Some values.(below (Array.length values))) done;
    w) in
  values, weak

let () =
  Gc.set { (Gc.get ()) with max_overhead = 1_000_000 };
  let start = Bench.cpu () in
  let root =
    match kind with
    | "pairs" -> Obj.repr (pairs words)
    | "lists" -> Obj.repr (lists words)
    | "trees" -> Obj.repr (trees words)
    | "map" -> Obj.repr (map words)
    | "table" -> Obj.repr (table words)
    | "floats" -> Obj.repr (floats words)
    | "boxed" -> Obj.repr (boxed words)
    | "lazies" -> Obj.repr (lazies words)
    | "weak" -> Obj.repr (weak words)
    | other -> Bench.fail "no structure is called %s" other
  in
  let building = Bench.cpu () -. start in
  ignore (major ()); (* ends the cycle that building has begun *)
  let samples = List.init repeats (fun _ -> major () *. 1e3) in
  Bench.metric "major GC, best" (List.fold_left min infinity samples) "ms";
  Bench.metric "major GC, median" (Bench.median samples) "ms";
  Bench.metric "building" building "s";
  Bench.metric "resident" (Heap.megabytes (Bench.resident_bytes ())) "MB";
  Bench.metric "in huge pages" (Heap.megabytes (Heap.huge_bytes ())) "MB";
  Bench.metric "mappings" (float (Heap.mappings ())) "";
  Bench.gc_metrics ();
  ignore (Sys.opaque_identity root)
