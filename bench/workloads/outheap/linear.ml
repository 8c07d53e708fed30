(* SPDX-License-Identifier: MIT *)
(* Owned data beside data of the heap. Which: BENCH_LINEAR=linear (Outheap_linear), mutable (a tree of the heap that is
   changed in place), or map (the standard library).   linear numbers|texts|lists|quicksort|cache SIZE *)
let step = Sys.argv.(1)
let size = Bench.int_argument 2 ~default:1_000_000
let scattered i = i * 2_654_435_761 land 0xffffffff

module type MAP = sig
  type data
  type t

  val create : unit -> t
  val add : int -> data -> t -> t
  val find : int -> t -> data option
  val fold : (int -> data -> int -> int) -> t -> int -> int
  val length : t -> int
end

module type DATA = sig
  type t
end

module Of_library (D : DATA) : MAP with type data = D.t = struct
  module M = Map.Make (Int)

  type data = D.t
  type t = data M.t

  let create () = M.empty
  let add = M.add
  let find = M.find_opt
  let fold = M.fold
  let length = M.cardinal
end

(* A red-black tree whose nodes change, by the same steps as those of Outheap_linear.Map. *)
module Of_heap (D : DATA) : MAP with type data = D.t = struct
  type data = D.t

  type node =
    | Nil
    | Node of { mutable left : node; key : int; mutable data : data; mutable right : node; mutable red : bool }

  type t = { mutable root : node; mutable size : int }

  let create () = { root = Nil; size = 0 }
  let is_red = function Node { red; _ } -> red | Nil -> false
  let blacken = function Node n -> n.red <- false | Nil -> ()

  let balance_left t l =
    match (t, l) with
    | Node t', Node ({ red = true; _ } as l') ->
        if is_red l'.left then begin
          t'.left <- l'.right;
          l'.right <- t;
          blacken l'.left;
          l
        end
        else begin
          match l'.right with
          | Node ({ red = true; _ } as r') ->
              let r = l'.right in
              l'.right <- r'.left;
              t'.left <- r'.right;
              r'.left <- l;
              r'.right <- t;
              l'.red <- false;
              r
          | _ ->
              t'.left <- l;
              t
        end
    | Node t', _ ->
        t'.left <- l;
        t
    | Nil, _ -> t

  let balance_right t r =
    match (t, r) with
    | Node t', Node ({ red = true; _ } as r') ->
        if is_red r'.right then begin
          t'.right <- r'.left;
          r'.left <- t;
          blacken r'.right;
          r
        end
        else begin
          match r'.left with
          | Node ({ red = true; _ } as l') ->
              let l = r'.left in
              r'.left <- l'.right;
              t'.right <- l'.left;
              l'.right <- r;
              l'.left <- t;
              r'.red <- false;
              l
          | _ ->
              t'.right <- r;
              t
        end
    | Node t', _ ->
        t'.right <- r;
        t
    | Nil, _ -> t

  let rec insert o k v t =
    match t with
    | Nil ->
        o.size <- o.size + 1;
        Node { left = Nil; key = k; data = v; right = Nil; red = true }
    | Node n ->
        let order = Int.compare k n.key in
        if order = 0 then begin
          n.data <- v;
          t
        end
        else if n.red then begin
          if order < 0 then n.left <- insert o k v n.left else n.right <- insert o k v n.right;
          t
        end
        else if order < 0 then balance_left t (insert o k v n.left)
        else balance_right t (insert o k v n.right)

  let add k v o =
    let root = insert o k v o.root in
    blacken root;
    o.root <- root;
    o

  let rec search k = function
    | Nil -> None
    | Node n ->
        let order = Int.compare k n.key in
        if order = 0 then Some n.data else search k (if order < 0 then n.left else n.right)

  let find k o = search k o.root

  let fold f o acc =
    let rec go t acc = match t with Nil -> acc | Node n -> go n.right (f n.key n.data (go n.left acc)) in
    go o.root acc

  let length o = o.size
end

module Numbers = struct
  type t = int
end

module Texts = struct
  type t = string
end

module Key = struct
  include Outheap_linear.Plain (Numbers)

  let compare = Int.compare
end

module Owned_numbers = struct
  type data = int

  include Outheap_linear.Map.Make (Key) (Outheap_linear.Plain (Numbers)) ()
end

module Owned_texts = struct
  type data = string

  include Outheap_linear.Map.Make (Key) (Outheap_linear.Rooted (Texts) ()) ()
end

let each name seconds = Bench.metric name (seconds *. 1e9 /. float size) "ns"

let timed f =
  let start = Bench.cpu () in
  let result = f () in
  (result, Bench.cpu () -. start)

let full_major () =
  Gc.full_major ();
  let times = List.init 5 (fun _ -> let start = Bench.wall () in Gc.full_major (); Bench.wall () -. start) in
  Bench.metric "full major" (Bench.median times *. 1e3) "ms"

let peak () = Bench.metric "peak resident" (Heap.peak_resident ()) "MB"

module Maps (M : MAP) = struct
  let run data number =
    let t, insertion = timed (fun () ->
        let t = ref (M.create ()) in
        for i = 1 to size do t := M.add (scattered i) (data i) !t done;
        !t)
    in
    peak ();
    each "insert" insertion;
    let found, lookup = timed (fun () ->
        let n = ref 0 in
        for i = 1 to size do
          match M.find (scattered (size - i + 1)) t with Some v when number v = size - i + 1 -> incr n | _ -> ()
        done;
        !n)
    in
    each "look up" lookup;
    let sum, reading = timed (fun () -> M.fold (fun _ v sum -> sum + number v) t 0) in
    each "fold" reading;
    full_major ();
    let t, replacement = timed (fun () ->
        let t = ref t in
        for i = 1 to size do t := M.add (scattered i) (data i) !t done;
        !t)
    in
    each "replace" replacement;
    if found <> size || sum <> size * (size + 1) / 2 || M.length t <> size then Bench.fail "a map is wrong"
end

let numbers () =
  match Sys.getenv_opt "BENCH_LINEAR" with
  | Some "linear" -> let module R = Maps (Owned_numbers) in R.run Fun.id Fun.id
  | Some "mutable" -> let module R = Maps (Of_heap (Numbers)) in R.run Fun.id Fun.id
  | _ -> let module R = Maps (Of_library (Numbers)) in R.run Fun.id Fun.id

let texts () =
  match Sys.getenv_opt "BENCH_LINEAR" with
  | Some "linear" -> let module R = Maps (Owned_texts) in R.run string_of_int int_of_string
  | Some "mutable" -> let module R = Maps (Of_heap (Texts)) in R.run string_of_int int_of_string
  | _ -> let module R = Maps (Of_library (Texts)) in R.run string_of_int int_of_string

(* A list is built, reversed, mapped, sorted, filtered. *)
let random = let state = ref 1 in fun () -> state := (!state * 25_214_903_917 + 11) land 0xffff_ffff_ffff; !state lsr 17

let check sum length = if length <> (size / 2) || sum <= 0 then Bench.fail "a list is wrong: %d" length

let lists () =
  let words = Gc.minor_words () in
  (match Sys.getenv_opt "BENCH_LINEAR" with
  | Some "linear" ->
      let module L = Outheap_linear.List.Make (Outheap_linear.Plain (Numbers)) () in
      let l, building = timed (fun () ->
          let l = ref (L.create ()) in
          for i = 1 to size do l := L.cons ((random () * 2) + (i land 1)) !l done;
          !l)
      in
      each "cons" building;
      let l, reversal = timed (fun () -> L.rev l) in
      each "rev" reversal;
      let l, mapping = timed (fun () -> L.map (fun x -> x + 2) l) in
      each "map" mapping;
      full_major ();
      let l, sorting = timed (fun () -> L.sort Int.compare l) in
      each "sort" sorting;
      let l, filtering = timed (fun () -> L.filter (fun x -> x land 1 = 0) l) in
      each "filter" filtering;
      check (L.fold ( + ) 0 l) (L.length l)
  | _ ->
      let l, building = timed (fun () ->
          let l = ref [] in
          for i = 1 to size do l := ((random () * 2) + (i land 1)) :: !l done;
          !l)
      in
      each "cons" building;
      let l, reversal = timed (fun () -> List.rev l) in
      each "rev" reversal;
      let l, mapping = timed (fun () -> List.map (fun x -> x + 2) l) in
      each "map" mapping;
      full_major ();
      let l, sorting = timed (fun () -> List.sort Int.compare l) in
      each "sort" sorting;
      let l, filtering = timed (fun () -> List.filter (fun x -> x land 1 = 0) l) in
      each "filter" filtering;
      check (List.fold_left ( + ) 0 l) (List.length l));
  Bench.metric "minor heap, words each" ((Gc.minor_words () -. words) /. float size) "words";
  peak ()

(* Quicksort of a list, by the same steps: with cells that are written again, and with new ones. *)
type numbers = Nil | Cons of int * numbers

module C =
  Outheap_linear.Cells.Make
    (struct
      type t = numbers

      let example = Cons (max_int, Nil)
    end)
    ()

let again x rest cell = C.put (C.token cell) (Cons (x, rest))

let rec divide_cells pivot l small large =
  match l with
  | Nil -> (small, large)
  | Cons _ -> (
      let cell = C.take l in
      match Outheap_linear.Cells.fields cell with
      | Cons (x, rest) when x < pivot -> divide_cells pivot rest (again x small cell) large
      | Cons (x, rest) -> divide_cells pivot rest small (again x large cell)
      | Nil -> (small, large))

let rec quicksort_cells l sorted =
  match l with
  | Nil -> sorted
  | Cons _ -> (
      let cell = C.take l in
      match Outheap_linear.Cells.fields cell with
      | Cons (pivot, rest) ->
          let small, large = divide_cells pivot rest Nil Nil in
          quicksort_cells small (again pivot (quicksort_cells large sorted) cell)
      | Nil -> sorted)

(* By the functions that libraries have: partition, and sort where few are left. *)
module Integers = struct type t = int end
module L = Outheap_linear.List.Make (Outheap_linear.Plain (Integers)) ()

let few = 32

let rec quicksort_owned l sorted =
  if L.length l <= few then L.append (L.sort Int.compare l) sorted
  else
    match L.uncons l with
    | None -> sorted
    | Some (pivot, rest) ->
        let small, large = L.partition (fun x -> x < pivot) rest in
        quicksort_owned small (L.cons pivot (quicksort_owned large sorted))

let rec quicksort_library l sorted =
  if List.compare_length_with l few <= 0 then List.append (List.sort Int.compare l) sorted
  else
    match l with
    | [] -> sorted
    | pivot :: rest ->
        let small, large = List.partition (fun x -> x < pivot) rest in
        quicksort_library small (pivot :: quicksort_library large sorted)

let rec divide pivot l small large =
  match l with
  | [] -> (small, large)
  | x :: rest when x < pivot -> divide pivot rest (x :: small) large
  | x :: rest -> divide pivot rest small (x :: large)

let rec quicksort_list l sorted =
  match l with
  | [] -> sorted
  | pivot :: rest ->
      let small, large = divide pivot rest [] [] in
      quicksort_list small (pivot :: quicksort_list large sorted)

(* What has come into the major heap since then. *)
let promoted before =
  Bench.metric "promoted, words each" (((Gc.quick_stat ()).promoted_words -. before) /. float size) "words"

let quicksort () =
  let check l =
    let rec go n before = function
      | x :: rest -> if x < before then Bench.fail "a list is not sorted" else go (n + 1) x rest
      | [] -> if n <> size then Bench.fail "%d elements of %d are left" n size
    in
    go 0 min_int l
  in
  let sorted =
    match Sys.getenv_opt "BENCH_LINEAR" with
    | Some "linear" ->
        let l = ref Nil in
        for _ = 1 to size do l := C.make (Cons (random (), !l)) done;
        let live = C.live () and words = (Gc.quick_stat ()).promoted_words in
        let l, sorting = timed (fun () -> quicksort_cells !l Nil) in
        each "quicksort" sorting;
        promoted words;
        if C.live () <> live then Bench.fail "there are %d cells, and were %d" (C.live ()) live;
        let rec list l all = match l with Nil -> List.rev all | Cons (x, rest) -> list rest (x :: all) in
        let sorted = list l [] in
        let l = ref (L.create ()) in
        for _ = 1 to size do l := L.cons (random ()) !l done;
        let l, sorting = timed (fun () -> quicksort_owned !l (L.create ())) in
        each "quicksort by partition" sorting;
        check (L.to_list l);
        sorted
    | _ ->
        let l = ref [] in
        for _ = 1 to size do l := random () :: !l done;
        let words = (Gc.quick_stat ()).promoted_words in
        let l, sorting = timed (fun () -> quicksort_list !l []) in
        each "quicksort" sorting;
        promoted words;
        let l' = ref [] in
        for _ = 1 to size do l' := random () :: !l' done;
        let l', sorting = timed (fun () -> quicksort_library !l' []) in
        each "quicksort by partition" sorting;
        check l';
        l
  in
  peak ();
  check sorted

(* A cache of [size] strings: each step looks two of them up, adds one, and drops the oldest. *)
let key i = "key:" ^ string_of_int i
let data i = String.make (16 + (i land 31)) 'd'

let cache () =
  let replace, find, remove =
    match Sys.getenv_opt "BENCH_LINEAR" with
    | Some "linear" ->
        let module T =
          Outheap_linear.Table.Make
            (struct
              include Outheap_linear.Text

              let equal = String.equal
              let hash = Hashtbl.hash
            end)
            (Outheap_linear.Text)
            ()
        in
        let t = T.create () in
        ((fun k v -> T.replace k v t), (fun k -> T.find k t), fun k -> T.remove k t)
    | _ ->
        let t = Hashtbl.create 16 in
        ((fun k v -> Hashtbl.replace t k v), (fun k -> Hashtbl.find_opt t k), fun k -> Hashtbl.remove t k)
  in
  let filling = Array.make size 0. and steps = Array.make size 0. in
  let start = Bench.cpu () in
  for i = 0 to size - 1 do
    let from = Bench.wall () in
    replace (key i) (data i);
    filling.(i) <- Bench.wall () -. from
  done;
  each "fill" (Bench.cpu () -. start);
  let missing = ref 0 in
  let look i = match find (key i) with Some _ -> () | None -> incr missing in
  let start = Bench.cpu () in
  for i = size to (2 * size) - 1 do
    let from = Bench.wall () in
    look (i - 1 - (random () mod size));
    look (i - 1 - (random () mod size));
    replace (key i) (data i);
    remove (key (i - size));
    steps.(i - size) <- Bench.wall () -. from
  done;
  each "step" (Bench.cpu () -. start);
  let longest name times =
    Array.sort Float.compare times;
    Bench.metric (name ^ ", 99.9 %") (times.(size * 999 / 1000) *. 1e6) "us";
    Bench.metric (name ^ ", 99.99 %") (times.(size * 9999 / 10000) *. 1e6) "us";
    Bench.metric (name ^ ", longest") (times.(size - 1) *. 1e3) "ms"
  in
  longest "fill" filling;
  longest "step" steps;
  full_major ();
  peak ();
  look ((2 * size) - 1);
  if !missing > 0 then Bench.fail "%d are missing" !missing

let () =
  match step with
  | "cache" -> cache ()
  | "numbers" -> numbers ()
  | "texts" -> texts ()
  | "lists" -> lists ()
  | "quicksort" -> quicksort ()
  | other -> Bench.fail "no step %s" other
