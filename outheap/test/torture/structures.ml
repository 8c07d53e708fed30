(* SPDX-License-Identifier: MIT *)
(* Structures of every kind, and the model of each: the items that its fields hold. *)

open Foreign

external root : bool -> Obj.t -> nativeint = "torture_root"
external root_get : nativeint -> Obj.t = "torture_root_get"
external root_set : nativeint -> Obj.t -> unit = "torture_root_set"
external root_free : nativeint -> unit = "torture_root_free"
external tuple : int -> Obj.t -> Obj.t -> Obj.t * Obj.t = "torture_tuple"
external custom : Obj.t -> bool -> Obj.t = "torture_custom"
external custom_get : Obj.t -> Obj.t = "torture_custom_get"

type cell = {
  name : string;
  check : unit -> unit;            (* raises Wrong *)
  change : context -> unit;        (* changes a field, or builds the structure anew *)
  drop : unit -> unit;             (* what has to be done when it is given up *)
}

let nothing () = ()

(* A structure with fields that can be read, and changed one by one. *)
let fields ?(drop = nothing) ?(item = item) name items ~get ~set =
  { name; drop;
    check = (fun () -> Array.iteri (fun i it ->
      if not (holds it (get i)) then wrong "%s: field %d does not hold %s" name i (text it)) items);
    change = (fun c ->
      let i = int c (Array.length items) in
      let it = item c in
      items.(i) <- it; set i (value it)) }

(* A structure that does not change: it is built anew. *)
let immutable ?(item = item_or_float) c name size (build : Obj.t array -> int -> Obj.t) =
  let make c =
    let items = Array.init size (fun _ -> item c) in
    let values = Array.make size (Obj.repr 0) in (* not an array of floats, whatever the first is *)
    Array.iteri (fun i it -> values.(i) <- value it) items;
    (items, build values) in
  let state = ref (make c) in
  { name; drop = nothing;
    check = (fun () ->
      let items, get = !state in
      Array.iteri (fun i it ->
        if not (holds it (get i)) then wrong "%s: field %d does not hold %s" name i (text it)) items);
    change = (fun c -> state := make c) }

let items ?(item = item) c n = Array.init n (fun _ -> item c)
let values its = Array.map value its (* no floats in it *)

let size c = match int c 40 with 0 -> 2000 + int c 4000 | 1 | 2 -> 100 + int c 300 | _ -> 1 + int c 12

let array_cell name its (a : Obj.t array) = fields name its ~get:(fun i -> a.(i)) ~set:(fun i v -> a.(i) <- v)

(* --- blocks --------------------------------------------------------------------------------------------------------
   *)

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

(* --- closures, objects, exceptions ---------------------------------------------------------------------------------
   *)

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

(* --- lazy values ---------------------------------------------------------------------------------------------------
   *)

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

(* --- weak ----------------------------------------------------------------------------------------------------------
   *)

(* Foreign pointers stay in weak arrays; strings may go, or are kept by `kept`. *)
let weak c =
  let n = 1 + int c 20 in
  let its = Array.make n None in
  let kept = Array.make n (Obj.repr 0) in
  let w : Obj.t Weak.t = Weak.create n in
  let set c i =
    let it = item c in
    let v = value it in
    its.(i) <- Some (it, bool c);
    kept.(i) <- (match its.(i) with Some (_, true) -> v | _ -> Obj.repr 0);
    Weak.set w i (Some v) in
  for i = 0 to n - 1 do set c i done;
  { name = "weak"; drop = nothing;
    check = (fun () ->
      Array.iteri (fun i it ->
        match it with
        | None -> if Weak.check w i then wrong "weak: %d is not empty" i
        | Some (it, keeps) ->
          let stays = keeps || match it with Foreign _ | Int _ -> true | _ -> false in
          (match if i land 1 = 0 then Weak.get w i else Weak.get_copy w i with
           | Some v -> if not (holds it v) then wrong "weak: %d does not hold %s" i (text it)
           | None -> if stays then wrong "weak: %d lost %s" i (text it));
          if stays && not (Weak.check w i) then wrong "weak: check %d" i) its);
    change = (fun c ->
      match int c 6 with
      | 0 -> let i = int c n in its.(i) <- None; kept.(i) <- Obj.repr 0; Weak.set w i None
      | 1 when n > 2 ->
        let k = int c (n - 1) in
        Array.blit its 0 its k (n - k); Array.blit kept 0 kept k (n - k); Weak.blit w 0 w k (n - k)
      | _ -> set c (int c n)) }

(* Keys and data foreign or not. The data stays as long as the keys do. *)
let ephemeron c =
  let make c =
    let n = int c 5 in
    let keys = items c n and data = item_or_float c in
    let keep = bool c in
    let ks = values keys in
    let e = Obj.Ephemeron.create n in
    Array.iteri (fun i k -> Obj.Ephemeron.set_key e i k) ks;
    Obj.Ephemeron.set_data e (value data);
    let stay = keep || Array.for_all (function Foreign _ | Int _ -> true | _ -> false) keys in
    (e, keys, data, (if keep then ks else [||]), stay) in
  let state = ref (make c) in
  { name = "ephemeron"; drop = nothing;
    check = (fun () ->
      let e, keys, data, ks, stay = !state in
      (match Obj.Ephemeron.get_data e with
       | Some v -> if not (holds data v) then wrong "ephemeron: the data is not %s" (text data)
       | None -> if stay then wrong "ephemeron: lost its data %s" (text data));
      (match Obj.Ephemeron.get_data_copy e with
       | Some v -> if not (holds data v) then wrong "ephemeron: the copy of the data is not %s" (text data)
       | None -> if stay then wrong "ephemeron: lost its data %s" (text data));
      Array.iteri (fun i k ->
        match Obj.Ephemeron.get_key e i, Obj.Ephemeron.get_key_copy e i with
        | Some v, Some w -> if not (holds k v && holds k w) then wrong "ephemeron: key %d is not %s" i (text k)
        | None, None -> if stay then wrong "ephemeron: lost key %s" (text k)
        | Some _, None -> () (* between the two it can go *)
        | None, Some _ -> wrong "ephemeron: a copy of a key that is gone") keys;
      ignore (Sys.opaque_identity ks));
    change = (fun c ->
      let e, keys, data, ks, stay = !state in
      match int c 4 with
      | 0 -> state := make c
      | 1 ->
        (* a foreign key in place of any *)
        if Array.length keys > 0 then begin
          let i = int c (Array.length keys) and it = Foreign (pattern c) in
          keys.(i) <- it; if Array.length ks > 0 then ks.(i) <- Obj.repr 0;
          Obj.Ephemeron.set_key e i (value it)
        end
      | 2 when stay -> let data = Foreign (pattern c) in Obj.Ephemeron.set_data e (value data);
          state := (e, keys, data, ks, stay)
      | _ ->
        let n = Array.length keys in
        let f = Obj.Ephemeron.create n in
        Obj.Ephemeron.blit_key e 0 f 0 n;
        (* 5.3's own blit_data fails on data that is not marked yet *)
        if String.sub Sys.ocaml_version 0 4 = "5.3." then
          Option.iter (Obj.Ephemeron.set_data f) (Obj.Ephemeron.get_data e)
        else Obj.Ephemeron.blit_data e f;
        state := (f, keys, data, ks, stay)) }

module K = Ephemeron.K1
let ephemeron_table c =
  let module T = K.Make (struct type t = Obj.t let equal = (==) let hash (_ : t) = 3 end) in
  let t = T.create 8 and model = ref [] in
  let add c = let k = pattern c and d = item_or_float c in
    model := (k, d) :: List.remove_assoc k (List.filter (fun (j, _) -> foreign j != foreign k) !model);
    T.replace t (foreign k) (value d) in
  for _ = 1 to 1 + int c 10 do add c done;
  { name = "ephemeron-table"; drop = nothing;
    check = (fun () -> List.iter (fun (k, d) ->
      match T.find_opt t (foreign k) with
      | Some v -> if not (holds d v) then wrong "ephemeron-table: %s is not %s" (text (Foreign k)) (text d)
      | None -> wrong "ephemeron-table: lost %s" (text (Foreign k))) !model);
    change = add }

(* --- containers ----------------------------------------------------------------------------------------------------
   *)

let hash_table c =
  let t : (Obj.t, Obj.t) Hashtbl.t = Hashtbl.create 4 and model = ref [] in
  let add c =
    let k = pattern c and d = item_or_float c in
    model := (k, d) :: List.filter (fun (j, _) -> foreign j != foreign k) !model;
    Hashtbl.replace t (foreign k) (value d) in
  for _ = 1 to 1 + int c 30 do add c done;
  { name = "hash-table"; drop = nothing;
    check = (fun () ->
      List.iter (fun (k, d) ->
        match Hashtbl.find_opt t (foreign k) with
        | Some v -> if not (holds d v) then wrong "hash-table: %s is not %s" (text (Foreign k)) (text d)
        | None -> wrong "hash-table: lost %s" (text (Foreign k))) !model;
      if Hashtbl.length t <> List.length !model then
        wrong "hash-table: has %d, not %d" (Hashtbl.length t) (List.length !model));
    change = (fun c ->
      if List.length !model > 40 then begin
        let k, _ = List.nth !model (int c 40) in
        model := List.filter (fun (j, _) -> foreign j != foreign k) !model; Hashtbl.remove t (foreign k)
      end else add c) }

module Map_ = Map.Make (struct type t = Obj.t let compare = compare end)
let map c =
  let t = ref Map_.empty and model = ref [] in
  let add c =
    let k = pattern c and d = item_or_float c in
    model := (k, d) :: List.filter (fun (j, _) -> foreign j != foreign k) !model;
    t := Map_.add (foreign k) (value d) !t in
  for _ = 1 to 1 + int c 30 do add c done;
  { name = "map"; drop = nothing;
    check = (fun () -> List.iter (fun (k, d) ->
      match Map_.find_opt (foreign k) !t with
      | Some v -> if not (holds d v) then wrong "map: %s is not %s" (text (Foreign k)) (text d)
      | None -> wrong "map: lost %s" (text (Foreign k))) !model;
      if Map_.cardinal !t <> List.length !model then wrong "map: size");
    change = (fun c -> if List.length !model > 40 then (t := Map_.empty; model := []); add c) }

let queue c =
  let q = Queue.create () and model = Queue.create () in
  let add c = let it = item_or_float c in Queue.add it model; Queue.add (value it) q in
  for _ = 1 to 1 + int c 10 do add c done;
  { name = "queue"; drop = nothing;
    check = (fun () ->
      let its = List.of_seq (Queue.to_seq model) and vs = List.of_seq (Queue.to_seq q) in
      if not (List.for_all2 holds its vs) then wrong "queue");
    change = (fun c -> add c; if Queue.length q > 10 then (ignore (Queue.pop q); ignore (Queue.pop model))) }

(* --- C -------------------------------------------------------------------------------------------------------------
   *)

let root_ generational name c =
  let its = items ~item:item_or_float c 1 in
  let r = root generational (value its.(0)) in
  fields ~item:item_or_float name its ~get:(fun _ -> root_get r) ~set:(fun _ v -> root_set r v) ~drop:(fun () ->
    root_free r)

let named_value c =
  (* a few names, taken in turn: named values are never forgotten *)
  let its = items ~item:item_or_float c 1 in
  let name = Printf.sprintf "torture-%d" (int c 1000) in
  { name = "named-value"; drop = nothing; check = nothing;
    change = (fun c -> its.(0) <- item c; Callback.register name (value its.(0))) }

let custom_ c = immutable ~item:(fun c -> Foreign (pattern c)) c "custom" 1 (fun v ->
  let x = custom v.(0) false in fun _ -> custom_get x)
let abstract c = immutable ~item:(fun c -> Foreign (pattern c)) c "abstract" 1 (fun v ->
  let x = custom v.(0) true in fun _ -> custom_get x)

(* --- finalisers ----------------------------------------------------------------------------------------------------
   *)

let failures = Atomic.make None
let finaliser c =
  let make c =
    let a = item_or_float c and b = item_or_float c in
    let va = value a and vb = value b in
    let r = ref va in
    let first = bool c in
    let finish () = if not (holds b vb) then
      Atomic.set failures (Some ("finaliser's environment does not hold " ^ text b)) in
    if first then Gc.finalise (fun r ->
      finish (); if not (holds a !r) then Atomic.set failures (Some ("finalised ref does not hold " ^ text a))) r
    else Gc.finalise_last finish r;
    (a, r) in
  let state = ref (make c) in
  { name = "finaliser"; drop = nothing;
    check = (fun () ->
      let a, r = !state in
      if not (holds a !r) then wrong "finaliser: ref does not hold %s" (text a);
      match Atomic.get failures with Some s -> raise (Wrong s) | None -> ());
    change = (fun c -> state := make c) }

(* --- threads -------------------------------------------------------------------------------------------------------
   *)

(* A thread whose stack holds foreign pointers, in a live frame, while it waits. *)
let thread c =
  let make c =
    let its = items ~item:item_or_float c 4 in
    let stop = Atomic.make false and result = Atomic.make true in
    let t = Thread.create (fun () ->
      let a = value its.(0) and b = value its.(1) and x = value its.(2) in
      let r = ref (value its.(3)) in
      while not (Atomic.get stop) do
        ignore (Sys.opaque_identity (ref a)); Thread.delay 0.0005;
        Atomic.set result (Atomic.get result && holds its.(0) a && holds its.(1) b && holds its.(2) x
                           && holds its.(3) !r)
      done) () in
    (stop, result, t) in
  let state = ref (make c) in
  let finish (stop, _, t) = Atomic.set stop true; Thread.join t in
  { name = "thread";
    check = (fun () -> let _, result, _ = !state in
             if not (Atomic.get result) then wrong "thread: a local variable has changed");
    drop = (fun () -> finish !state);
    change = (fun c -> if int c 10 = 0 then (finish !state; state := make c) else Thread.yield ()) }

(* --- effects -------------------------------------------------------------------------------------------------------
   *)

(* A fiber whose frames hold foreign pointers while it is suspended. *)
let continuation c =
  let make c =
    let its = items ~item:item_or_float c 5 in
    (its, Par.suspend (fun wait ->
       let a = value its.(0) and b = value its.(1) and x = value its.(2) in
       let deep = value its.(3) in
       let rec down n =
         if n = 0 then begin
           let again = ref true in
           while !again do
             again := wait ();
             if not (holds its.(0) a && holds its.(1) b && holds its.(2) x) then
               wrong "continuation: a local variable has changed"
           done
         end else begin
           let mine = value its.(4) in
           down (n - 1);
           if not (holds its.(4) mine && holds its.(3) deep) then
             wrong "continuation: a variable of an outer frame has changed"
         end in
       down 5)) in
  let state = ref (make c) in
  { name = "continuation"; drop = nothing;
    check = nothing;
    change = (fun c ->
      let _, fiber = !state in
      match int c 6 with
      | 0 -> Par.wake fiber false; state := make c
      | 1 -> state := make c (* the fiber becomes garbage *)
      | _ -> Par.wake fiber true) }

let local_to_domain c =
  let its = items ~item:item_or_float c 1 in
  let get, set = Par.local () in
  set (value its.(0));
  (* Read where it was written: a domain that comes by this cell sees its own. *)
  let home = Par.self () in
  let cell = fields ~item:item_or_float "local-to-domain" its ~get:(fun _ -> get ()) ~set:(fun _ v -> set v) in
  { cell with check = (fun () -> if Par.self () = home then cell.check ()); change = (fun c ->
    if Par.self () = home then cell.change c) }

(* Every structure; those that have weak pointers apart. *)
let plain = [
  "array-literal", array_literal; "array-make", array_make; "array-init", array_init;
  "array-operations", array_operations;
  "array-blit", array_blit; "block", block; "block-copies", block_copies; "tuple", tuple_; "tuple-of-c", tuple_of_c;
  "record", record;
  "ref", reference; "atomic", atomic; "list", list_; "nested", nested; "variant", variant; "closure", closure;
  "closures-recursive", closures_recursive; "closure-partial", closure_partial; "object", object_;
  "exception", exception_;
  "module", module_; "lazy", lazy_; "lazy-from-val", lazy_from_val; "lazies", lazies; "hash-table", hash_table;
  "map", map; "queue", queue;
  "generational-root", root_ true "generational-root"; "global-root", root_ false "global-root";
  "named-value", named_value;
  "custom", custom_; "abstract", abstract; "finaliser", finaliser; "continuation", continuation;
  "local-to-domain", local_to_domain ]
let weak_ones = [ "weak", weak; "ephemeron", ephemeron; "ephemeron-table", ephemeron_table ]
let threads = [ "thread", thread ]
