(* SPDX-License-Identifier: MIT *)
(* Blocks of every kind, closures, objects, exceptions, modules, and lazy values. *)

open Foreign
open Cell

external tuple : int -> Obj.t -> Obj.t -> Obj.t * Obj.t = "torture_tuple"

(* --- blocks ------------------------------------------------------------------------------------------------------- *)

let array_literal c =
  let its = items c 4 in
  array_cell "array-literal" its [| value its.(0); value its.(1); value its.(2); value its.(3) |]

let array_make c =
  let n = size c and it = item c in
  let its = Array.make n it in
  let a = Array.make n (value it) in
  (* All fields are one string, if it is one, which is still what the model says. *)
  array_cell "array-make" its a

let array_init c = let its = items c (size c) in array_cell "array-init" its (values its)

(* Array.append, sub, concat, blit, fill, of_list: the model goes through the same. *)
let array_operations c =
  let its = items c (2 + size c) in
  let a = values its in
  let n = Array.length a in
  let its, a =
    match int c 8 with
    | 0 -> let b = items c (1 + int c 5) in (Array.append its b, Array.append a (values b))
    | 1 -> let k = int c n in (Array.sub its k (n - k), Array.sub a k (n - k))
    | 2 -> let b = items c 3 in (Array.concat [its; b; its], Array.concat [a; values b; a])
    | 3 -> let k = int c (n / 2 + 1) in Array.blit its 0 its k (n - k); Array.blit a 0 a k (n - k); (its, a)
    | 4 -> let it = item c in Array.fill its 0 (n / 2) it; Array.fill a 0 (n / 2) (value it); (its, a)
    | 5 -> (its, Array.of_list (Array.to_list a))
    | 6 -> (its, Array.copy a)
    | _ -> let p = Array.init n (fun i -> i) in (Array.map (fun i -> its.(i)) p, Array.map (fun i -> a.(i)) p) in
  if Array.length a = 0 then array_init c else array_cell "array-operations" its a

(* Between old and young arrays. *)
let array_blit c =
  let n = 3 + size c in
  let its = items c n and from = items c n in
  let a = values its in
  if bool c then Gc.minor ();
  let b = values from in
  let k = int c n in
  Array.blit from 0 its k (n - k); Array.blit b 0 a k (n - k);
  array_cell "array-blit" its a

let block c =
  let n = size c and tag = int c 200 in
  let its = items ~item:item_or_float c n in
  let b = Obj.new_block tag n in
  Array.iteri (fun i it -> Obj.set_field b i (value it)) its;
  fields ~item:item_or_float "block" its ~get:(fun i -> Obj.field b i) ~set:(fun i v -> Obj.set_field b i v)

let block_copies c =
  let n = 1 + int c 300 in
  let its = items ~item:item_or_float c n in
  let b = Obj.new_block 3 n in
  Array.iteri (fun i it -> Obj.set_field b i (value it)) its;
  let d = if bool c then Obj.dup b else Obj.with_tag (int c 100) b in
  fields ~item:item_or_float "block-copies" its ~get:(fun i -> Obj.field d i) ~set:(fun i v -> Obj.set_field d i v)

let tuple_ c =
  immutable c "tuple" 3 (fun v ->
    let t = (v.(0), v.(1), v.(2)) in fun i -> let x, y, z = t in if i = 0 then x else if i = 1 then y else z)
let tuple_of_c c =
  let how = int c 4 in
  immutable c "tuple-of-c" 2 (fun v -> let t = tuple how v.(0) v.(1) in fun i -> if i = 0 then fst t else snd t)

type record = { mutable a : Obj.t; mutable b : Obj.t; number : int; mutable c : Obj.t }
let record c =
  let its = items ~item:item_or_float c 3 in
  let r = { a = value its.(0); b = value its.(1); number = 7; c = value its.(2) } in
  fields ~item:item_or_float "record" its
    ~get:(fun i -> match i with 0 -> r.a | 1 -> r.b | _ -> r.c)
    ~set:(fun i v -> match i with 0 -> r.a <- v | 1 -> r.b <- v | _ -> r.c <- v)

let reference c =
  let its = items ~item:item_or_float c 1 in
  let r = ref (value its.(0)) in
  fields ~item:item_or_float "ref" its ~get:(fun _ -> !r) ~set:(fun _ v -> r := v)

let atomic c =
  let its = items ~item:item_or_float c 1 in
  let r = Atomic.make (value its.(0)) in
  fields ~item:item_or_float "atomic" its ~get:(fun _ -> Atomic.get r) ~set:(fun _ v ->
    let was = Atomic.get r in
    if Hashtbl.hash (text its.(0)) land 1 = 0 then Atomic.set r v
    else if not (Atomic.compare_and_set r was v) then wrong "atomic: compare_and_set")

let list_ c =
  let n = size c in
  immutable c "list" n (fun v -> let l = Array.to_list v in
    (* Checked from the front, so that it takes linear time. *)
    let place = ref (0, l) in
    fun i ->
      let rec go k l = if k = i then (place := (k, l); List.hd l) else go (k + 1) (List.tl l) in
      let k, rest = !place in if i >= k then go k rest else go 0 l)

let nested c =
  immutable ~item c "nested" 8 (fun v ->
    let t = [ (v.(0), Some [| v.(1); v.(2) |]); (v.(3), None); (v.(4), Some [| v.(5) |]) ], `Tag (v.(6), ref v.(7)) in
    fun i ->
      match t, i with
      | ((a, _) :: _, _), 0 -> a
      | ((_, Some x) :: _, _), (1 | 2) -> x.(i - 1)
      | (_ :: (a, _) :: _, _), 3 -> a
      | ([_; _; (a, _)], _), 4 -> a
      | ([_; _; (_, Some x)], _), 5 -> x.(0)
      | (_, `Tag (a, _)), 6 -> a
      | (_, `Tag (_, r)), _ -> !r
      | _ -> wrong "nested: shape")

type variant = A of Obj.t | B of { x : Obj.t; y : Obj.t } | C of variant * Obj.t
let variant c =
  immutable c "variant" 4 (fun v -> let t = C (C (B { x = v.(0); y = v.(1) }, v.(2)), v.(3)) and u = A v.(0) in
    fun i -> match t, u, i with
      | C (C (B b, _), _), A w, 0 -> if w == b.x then w else wrong "variant: differs"
      | C (C (B b, _), _), _, 1 -> b.y
      | C (C (_, w), _), _, 2 -> w
      | C (_, w), _, _ -> w
      | _ -> wrong "variant: shape")

(* --- closures, objects, exceptions -------------------------------------------------------------------------------- *)

let closure c =
  immutable c "closure" 4 (fun v -> let a = v.(0) and b = v.(1) and x = v.(2) and y = v.(3) in
    Sys.opaque_identity (fun i -> match i with 0 -> a | 1 -> b | 2 -> x | _ -> y))

let closures_recursive c =
  immutable c "closures-recursive" 3 (fun v -> let a = v.(0) and b = v.(1) and x = v.(2) in
    let rec first i = if i = 0 then a else second (i - 1)
    and second i = if i = 0 then b else if i > 5 then first i else third i
    and third i = if i = 1 then x else first i in
    (* one through an infix pointer *)
    let g = Sys.opaque_identity second in
    fun i -> if i = 0 then first 0 else if i = 1 then g 0 else g 1)

let apply_partially = Sys.opaque_identity (fun a b x i -> if i = 0 then a else if i = 1 then b else x)
let closure_partial c = immutable c "closure-partial" 3 (fun v ->
  (Sys.opaque_identity apply_partially) v.(0) v.(1) v.(2))

let object_ c =
  let its = items ~item:item_or_float c 3 in
  let o =
    let v = Array.map (fun _ -> Obj.repr 0) its in
    Array.iteri (fun i it -> v.(i) <- value it) its;
    object
      val mutable x = v.(0) val mutable y = v.(1) val mutable z = v.(2)
      method get i = match i with 0 -> x | 1 -> y | _ -> z
      method set i v = match i with 0 -> x <- v | 1 -> y <- v | _ -> z <- v
    end in
  let o = if bool c then Oo.copy o else o in
  fields ~item:item_or_float "object" its ~get:o#get ~set:o#set

exception E of Obj.t * Obj.t
let exception_ c =
  immutable c "exception" 2 (fun v -> let e = E (v.(0), v.(1)) in
    fun i -> try raise e with E (a, b) -> if i = 0 then a else b)

module type M = sig val a : Obj.t val b : Obj.t end
let module_ c =
  immutable c "module" 2 (fun v ->
    let m = (module struct let a = v.(0) let b = v.(1) end : M) in
    let m = Sys.opaque_identity m in
    fun i -> let module X = (val m : M) in if i = 0 then X.a else X.b)

(* --- lazy values -------------------------------------------------------------------------------------------------- *)

(* Not forced, forced, or made from a value; forced at some change, read at every check afterwards. Lazy.from_val of a
   foreign pointer is that pointer itself. Compiled code for Lazy.force reads its header without asking the runtime, so
   there is no help for it; Lazy.force_val asks. A block with Forward_tag that collections leave alone is safe with
   both. *)
let lazy_gen name itself c =
  let force l = if itself then Lazy.force_val l else Lazy.force l in
  let make c =
    let it = item_or_float c in
    let v = value it in
    let w = match it with Float _ -> Obj.repr 1. | _ -> v in
    let l : Obj.t Lazy.t =
      match int c 4 with
      | _ when itself -> Lazy.from_val v
      | 1 -> let l = lazy (Sys.opaque_identity v) in ignore (Lazy.force l); l
      | 2 -> Lazy.from_fun (fun () -> ignore (Sys.opaque_identity (ref w)); v)
      | 3 -> Lazy.map (fun x -> ignore (Sys.opaque_identity x); v) (lazy (Sys.opaque_identity w))
      | _ -> lazy (ignore (Sys.opaque_identity w); v) in
    (it, l, ref (bool c)) in
  let state = ref (make c) in
  { name; drop = nothing;
    check = (fun () ->
      let it, l, forced = !state in
      if !forced then begin
        if not (holds it (force l)) then wrong "lazy does not hold %s" (text it);
        if not (Lazy.is_val l) then wrong "lazy: not a value once forced";
        (match l with _ when itself -> () | lazy v -> if not (holds it v) then wrong "lazy pattern does not hold %s"
           (text it))
      end);
    change = (fun c ->
      let _, _, forced = !state in
      if !forced && bool c then state := make c else forced := true) }

let lazy_ c = lazy_gen "lazy" false c
let lazy_from_val c = lazy_gen "lazy-from-val" true c

(* A block that points to a lazy value that is a Forward to a foreign pointer, which collections like to cut short. *)
let lazies c =
  let make c =
    let its = items c 5 in
    let ls = Array.map (fun it ->
      let v = value it in let l = lazy (Sys.opaque_identity v) in ignore (Lazy.force l); l) its in
    (its, ls, Array.to_list ls) in
  let state = ref (make c) in
  { name = "lazies"; drop = nothing;
    check = (fun () ->
      let its, ls, list = !state in
      List.iteri (fun i l ->
        if not (holds its.(i) (Lazy.force l)) || not (holds its.(i) (Lazy.force ls.(i))) then
          wrong "lazies: %d does not hold %s" i (text its.(i))) list);
    change = (fun c -> state := make c) }
