(* SPDX-License-Identifier: MIT *)
(* What holds values in other ways: containers of the library, C, finalisers, threads, effects, domains. *)

open Foreign
open Cell

external root : bool -> Obj.t -> nativeint = "torture_root"
external root_get : nativeint -> Obj.t = "torture_root_get"
external root_set : nativeint -> Obj.t -> unit = "torture_root_set"
external root_free : nativeint -> unit = "torture_root_free"
external custom : Obj.t -> bool -> Obj.t = "torture_custom"
external custom_get : Obj.t -> Obj.t = "torture_custom_get"

(* --- containers --------------------------------------------------------------------------------------------------- *)

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

(* --- C ------------------------------------------------------------------------------------------------------------ *)

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

(* --- finalisers --------------------------------------------------------------------------------------------------- *)

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

(* --- threads ------------------------------------------------------------------------------------------------------ *)

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

(* --- effects ------------------------------------------------------------------------------------------------------ *)

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
