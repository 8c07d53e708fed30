(* SPDX-License-Identifier: MIT *)
(* What lies outside the heap, or is owned from there: regions, hash-consed values, roots. *)
open Soak_check
module Region = Outheap_region
module H = Outheap_hashcons

let got = function Ok x -> x | Error e -> fail "regions: %s" (Region.error_to_string e)

type record = { number : int; words : string list; more : (int * string) array }

let record n =
  { number = n; words = List.init 20 (fun i -> string_of_int (n + i));
    more = Array.init 50 (fun i -> (n, string_of_int i)) }

let check_record what d =
  if d.words <> List.init 20 (fun i -> string_of_int (d.number + i)) then fail "%s: words of %d" what d.number;
  Array.iteri (fun i (n, s) -> if n <> d.number || s <> string_of_int i then fail "%s: %d of %d" what i d.number) d.more

(* Values of regions are held by the heap, and those of the heap by regions that are written to. *)
let regions () =
  let r = random 80 in
  let held = Array.make 200 (record 0) and tracked = Array.make 20 None in
  rounds (fun round ->
    for step = 1 to 10 do
      let root = got (Region.copy (record ((round * 100) + step))) in
      held.(Random.State.int r 200) <- Region.get root;
      litter r 1_000
    done;
    if Region.can_delete then begin
      let i = Random.State.int r 20 in
      let root = got (Region.copy ~writes:`Track (Array.make 100 (Some (cell 0)))) in
      let a = Region.get root in
      Array.iteri (fun i _ -> a.(i) <- Some (cell i)) a;
      tracked.(i) <- Some a;
      Array.iter (Option.iter (fun a ->
        let k = Random.State.int r 100 in
        let c = Option.get a.(k) in
        a.(k) <- None;
        litter r 50;
        check "tracked" c;
        a.(k) <- Some { c with next = None })) tracked
    end;
    Array.iter (check_record "regions") held;
    Array.iter (Option.iter (Array.iter (Option.iter (check "tracked")))) tracked;
    if round mod 5 = 4 then Gc.full_major ())

type term = node H.hash_consed
and node = Var of int | Name of string | App of term * term

let hashcons () =
  let r = random 81 in
  let table : node H.t = H.create 1000 in
  let held = Array.init 2_000 (fun i -> (i, H.hashcons table (Var i))) in
  let rec check_term n (t : term) =
    match t.node with
    | Var i -> if i <> n then fail "hashcons: %d is %d" n i
    | Name s -> if s <> string_of_int n then fail "hashcons: %d is %S" n s
    | App (a, b) -> check_term n a; check_term n b
  in
  rounds (fun _ ->
    for _ = 1 to 5_000 do
      let i = Random.State.int r 2_000 in
      let n, t = held.(i) in
      check_term n t;
      let fresh = Random.State.int r 5_000 in
      held.(i) <- (match Random.State.int r 3 with
        | 0 -> (fresh, H.hashcons table (Name (string_of_int fresh)))
        | 1 -> (fresh, H.hashcons table (Var fresh))
        | _ ->
          let t = H.hashcons table (Var n) in
          (n, H.hashcons table (App (t, H.hashcons table (Name (string_of_int n))))));
      let n, t = held.(i) in
      (match t.node with
       | Var _ -> if H.hashcons table (Var n) != t then fail "hashcons: %d is not unique" n
       | _ -> ());
      if i land 7 = 0 then litter r 5
    done)

external root_create : int -> Obj.t -> bool = "soak_root_create"
external root_get : int -> Obj.t = "soak_root_get"
external root_modify : int -> Obj.t -> bool = "soak_root_modify"
external root_delete : int -> unit = "soak_root_delete"

let roots () =
  let r = random 82 in
  let n = if !seconds > 5. then 100_000 else 30_000 in
  let of_ i = Obj.repr (cell i) in
  for i = 0 to n - 1 do if not (root_create i (of_ i)) then fail "roots: none" done;
  rounds (fun _ ->
    for _ = 1 to 20_000 do
      let i = Random.State.int r n in
      let c : cell = Obj.obj (root_get i) in
      check "roots" c;
      if c.id <> i then fail "roots: %d is %d" i c.id;
      if not (match Random.State.int r 3 with
        | 0 -> root_delete i; litter r 2; root_create i (Obj.repr c)
        | 1 -> root_modify i (of_ i)
        | _ -> root_delete i; root_create i (of_ i)) then fail "roots: refused"
    done);
  for i = 0 to n - 1 do
    check "roots, at last" (Obj.obj (root_get i));
    root_delete i
  done

let tests = [ "regions", regions; "hashcons", hashcons; "roots", roots ]
