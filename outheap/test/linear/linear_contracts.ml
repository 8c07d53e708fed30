(* SPDX-License-Identifier: MIT *)
(* What is promised at the edges: who may use what, and when; what may be in a cell; what becomes of the forgotten. *)
open Linear_checks
module N = Lists.Make (Ints) ()
module Q = L.Queue.Make (Ints) ()

module Key = struct
  include Ints

  let hook = ref ignore

  let compare a b =
    !hook ();
    compare (a : int) b
end

module T = L.Map.Make (Key) (Ints) ()

let list n = N.of_list (List.init n Fun.id)

(* Every function with an owner that was consumed, that is borrowed, and that is being changed. *)
let on_lists : (string * (N.t -> unit)) list =
  [
    ("cons", fun l -> ignore (N.cons 1 l)); ("uncons", fun l -> ignore (N.uncons l));
    ("rev", fun l -> ignore (N.rev l)); ("map", fun l -> ignore (N.map succ l));
    ("filter", fun l -> ignore (N.filter (fun _ -> true) l)); ("sort", fun l -> ignore (N.sort compare l));
    ("partition", fun l -> ignore (N.partition (fun _ -> false) l));
    ("append", fun l -> ignore (N.append l (list 1))); ("append to", fun l -> ignore (N.append (list 1) l));
    ("rev_append", fun l -> ignore (N.rev_append l (list 1)));
    ("rev_append to", fun l -> ignore (N.rev_append (list 1) l)); ("close", N.close);
  ]

let reading_lists : (string * (N.t -> unit)) list =
  [
    ("iter", N.iter ignore); ("fold", fun l -> N.fold (fun () _ -> ()) () l);
    ("to_list", fun l -> ignore (N.to_list l)); ("borrow", fun l -> N.borrow l ignore);
  ]

let on_maps : (string * (T.t -> unit)) list =
  [
    ("add", fun t -> ignore (T.add 3 3 t)); ("remove", fun t -> ignore (T.remove 1 t)); ("close", T.close);
  ]

let reading_maps : (string * (T.t -> unit)) list =
  [
    ("find", fun t -> ignore (T.find 1 t)); ("mem", fun t -> ignore (T.mem 1 t));
    ("iter", T.iter (fun _ _ -> ())); ("fold", fun t -> T.fold (fun _ _ () -> ()) t ());
    ("borrow", fun t -> T.borrow t ignore); ("min_binding", fun t -> ignore (T.min_binding t));
    ("max_binding", fun t -> ignore (T.max_binding t));
  ]

let map n = List.fold_left (fun t k -> T.add k k t) (T.create ()) (List.init n Fun.id)

let owners () =
  let consumed = list 3 in
  ignore (N.rev consumed);
  List.iter
    (fun (name, f) -> raises (name ^ " of a consumed list") L.Moved (fun () -> f consumed))
    (("length", fun l -> ignore (N.length l)) :: (on_lists @ reading_lists));
  let t = map 3 in
  let t' = T.add 7 7 t in
  List.iter
    (fun (name, f) -> raises (name ^ " of a consumed map") L.Moved (fun () -> f t))
    (("length", fun t -> ignore (T.length t)) :: (on_maps @ reading_maps));
  (* Borrowed: may be read, once more and deeper, but not changed; and may be changed afterwards. *)
  List.iter
    (fun (name, f) ->
      let l = list 3 in
      N.borrow l (fun view ->
          List.iter (fun (_, f) -> f l) reading_lists;
          raises (name ^ " of a borrowed list") L.Borrowed (fun () -> f l);
          N.borrow l (fun view' -> check "the same list" (view == view'));
          raises (name ^ " of a borrowed list, again") L.Borrowed (fun () -> f l));
      (try N.borrow l (fun _ -> raise Stop) with Stop -> ());
      f l)
    on_lists;
  List.iter
    (fun (name, f) ->
      let t = map 3 in
      T.borrow t (fun _ ->
          List.iter (fun (_, f) -> f t) reading_maps;
          raises (name ^ " of a borrowed map") L.Borrowed (fun () -> f t));
      f t)
    on_maps;
  (* While it is changed, or read, by functions that are called. *)
  List.iter
    (fun (name, f) ->
      let l = list 3 in
      let inside _ = raises (name ^ " inside of map") L.Borrowed (fun () -> f l) in
      let l = N.map (fun x -> inside x; x) l in
      check "map" (N.to_list l = [ 0; 1; 2 ]);
      let inside _ = raises (name ^ " inside of fold") L.Borrowed (fun () -> f l) in
      N.iter inside l)
    on_lists;
  List.iter
    (fun (name, f) ->
      let inside t =
        Key.hook :=
          fun () ->
            Key.hook := ignore;
            raises (name ^ " inside of compare") L.Borrowed (fun () -> f t)
      in
      let t = map 5 in
      inside t;
      let t = T.add 8 8 t in
      inside t;
      let t = T.remove 8 t in
      inside t;
      check "find" (T.find 2 t = Some 2);
      T.close t)
    on_maps;
  T.close t';
  let q = Q.create () in
  Q.push 1 q;
  Q.iter (fun _ -> raises "push inside of iter" L.Borrowed (fun () -> Q.push 2 q)) q;
  Q.iter (fun _ -> raises "pop inside of iter" L.Borrowed (fun () -> Q.pop q)) q;
  Q.push 2 q;
  check "queue" (Q.to_list q = [ 1; 2 ]);
  Q.close q;
  List.iter
    (fun (name, f) -> raises (name ^ " of a closed queue") L.Moved (fun () -> f q))
    [
      ("push", fun q -> Q.push 1 q); ("pop", fun q -> ignore (Q.pop q)); ("peek", fun q -> ignore (Q.peek q));
      ("length", fun q -> ignore (Q.length q)); ("close", Q.close); ("iter", Q.iter ignore);
      ("transfer", fun q -> Q.transfer q (Q.create ())); ("transfer to", fun q -> Q.transfer (Q.create ()) q);
    ];
  check "an empty list stays valid" (let l = N.create () in N.uncons l = None && N.length l = 0);
  N.close (N.create ())

(* --- what cells may have ------------------------------------------------------------------------------------------ *)

module Any = L.Plain (struct type t = Obj.t end)
module A = Lists.Make (Any) ()

let literal = "literal"
let pair = (1, "constant")
let constant_function x = x + 1
let rec is_even n = n = 0 || is_odd (n - 1)
and is_odd n = n <> 0 && is_even (n - 1)

let contents () =
  let keep what v =
    let l = A.cons v (A.create ()) in
    Gc.compact ();
    check (what ^ " comes back") (A.borrow l (fun view -> List.hd view == v));
    A.close l
  in
  let not_kept what v =
    let l = A.create () in
    refused what (fun () -> A.cons v l);
    check (what ^ ": the list is valid") (A.length l = 0)
  in
  List.iter
    (fun n -> keep "an immediate" (Obj.repr n))
    [ 0; 1; -1; max_int; min_int ];
  let certain = (ocaml5 || variant) && Sys.backend_type = Sys.Native in
  if certain then begin
    keep "a literal" (Obj.repr literal);
    keep "a constant pair" (Obj.repr pair);
    keep "a function without free variables" (Obj.repr constant_function);
    keep "one of two such functions" (Obj.repr is_even);
    keep "the other one" (Obj.repr is_odd);
    keep "a constant float" (Obj.repr 1.5)
  end;
  let n = opaque 5 in
  let rec down x = if x = 0 then n else up (x - 1) and up x = if x = 0 then n + 1 else down (x - 1) in
  List.iter
    (fun (what, v) ->
      not_kept what v;
      Gc.full_major ();
      not_kept (what ^ " that is old") v)
    [
      ("a string", Obj.repr (String.make 5 'a')); ("a long string", Obj.repr (String.make 100_000 'a'));
      ("a pair", Obj.repr (n, n)); ("a float", Obj.repr (float n)); ("an array", Obj.repr (Array.make 3000 n));
      ("a closure", Obj.repr (fun x -> x + n)); ("one of two", Obj.repr down); ("the other one", Obj.repr up);
      ("a lazy value", Obj.repr (lazy (print_int n)));
      ("a reference", Obj.repr (ref n)); ("an int64", Obj.repr (Int64.of_int n));
      ("a bigarray", Obj.repr (Bigarray.Array1.create Bigarray.char Bigarray.c_layout 5));
      ("an exception", Obj.repr (Failure (String.make 1 'a'))); ("a weak array", Obj.repr (Weak.create 3 : int Weak.t));
    ];
  (* Cells, those of other lists and its own. *)
  let l = list 3 in
  N.borrow l (fun view -> not_kept "a borrowed list" (Obj.repr view));
  N.close l;
  (* Regions. *)
  let in_region = Outheap_region.copy in
  (match in_region [ "a"; "b" ] with
  | Error _ -> check "a region" false
  | Ok root ->
      let v () = Obj.repr (Outheap_region.get root) in
      not_kept "a value of a region" (v ());
      L.hold root;
      L.hold root;
      keep "a value of a region that is held" (v ());
      not_kept "a value of another region"
        (match in_region (Some "c") with Ok root -> Obj.repr (Outheap_region.get root) | Error _ -> Obj.repr (ref 0)));
  whole "contents" (A.check ());
  check "nothing is left" (A.live () = 0)

(* A region that is held stays, whoever forgets it. *)
let held () =
  let module S = Lists.Make (L.Plain (Text)) () in
  let[@inline never] make i =
    match Outheap_region.copy (String.make 30 'x' ^ string_of_int i) with
    | Error _ -> S.create ()
    | Ok root ->
        L.hold root;
        S.cons (Outheap_region.get root) (S.create ())
  in
  let before = (Outheap_region.stats ()).live in
  let all = List.init 20 make in
  collect ();
  check "they live" ((Outheap_region.stats ()).live = before + 20);
  Gc.compact ();
  List.iteri (fun i l -> check "held" (S.to_list l = [ String.make 30 'x' ^ string_of_int i ])) all;
  List.iter S.close all

(* --- roots -------------------------------------------------------------------------------------------------------- *)

module Cell = struct
  type t = int ref
end

(* What is in a list lives; what was in it does not. *)
let rooted () =
  let module R = Lists.Make (L.Rooted (Cell) ()) () in
  let ended = Atomic.make 0 in
  let[@inline never] make n =
    let v = ref n in
    Gc.finalise (fun _ -> Atomic.incr ended) v;
    v
  in
  let[@inline never] fill () = List.fold_left (fun l n -> R.cons (make n) l) (R.create ()) (List.init 5000 Fun.id) in
  let l = fill () in
  collect ();
  Gc.compact ();
  check "none has ended" (Atomic.get ended = 0);
  check "all are there" (R.fold (fun a v -> a + !v) 0 l = 4999 * 2500);
  let l = R.filter (fun v -> !v land 1 = 0) l in
  collect ();
  check "half have ended" (Atomic.get ended = 2500);
  let l = R.map (fun v -> make !v) l in
  collect ();
  check "the replaced have ended" (Atomic.get ended = 5000);
  let[@inline never] pop l = match R.uncons l with Some (_, l) -> l | None -> l in
  let l = pop (pop l) in
  collect ();
  check "and two more" (Atomic.get ended = 5002);
  R.close l;
  collect ();
  check "and all" (Atomic.get ended = 7500);
  check "no cell is left" (R.live () = 0);
  (* A map, whose values are replaced. *)
  let module M = L.Map.Make (Key) (L.Rooted (Cell) ()) () in
  Atomic.set ended 0;
  let[@inline never] add n t = M.add (n mod 10) (make n) t in
  let t = ref (M.create ()) in
  for n = 1 to 100 do t := add n !t done;
  collect ();
  check "replaced ones have ended" (Atomic.get ended = 90);
  t := M.remove 3 !t;
  collect ();
  check "the removed one, too" (Atomic.get ended = 91);
  check "the others are there" (M.fold (fun _ v a -> a + !v) !t 0 = 955 - 93);
  M.close !t;
  collect ();
  check "and all" (Atomic.get ended = 100);
  (* Numbers of another process, read from a file; and before there is any slot. *)
  let module X = L.Rooted (Cell) () in
  let foreign n = raises "a number of another process" L.Moved (fun () -> X.get (Obj.magic (n : int))) in
  let numbers = [ 0; 1; 2; 1023; 1024; 1025; 8 * 1024; 9999; 1 lsl 40; max_int; -1; min_int ] in
  List.iter foreign numbers;
  let module Y = Lists.Make (X) () in
  let l = Y.of_list [ ref 17 ] in
  let own = Y.borrow l (fun l -> (Obj.magic (List.hd l) : int)) in
  check "its own number" (!(X.get (Obj.magic own)) = 17);
  List.iter (fun n -> if n <> own then foreign n) numbers;
  Y.close l;
  List.iter foreign numbers

(* --- forgotten, stale --------------------------------------------------------------------------------------------- *)

let forgotten () =
  let module F = Lists.Make (Ints) () in
  let module G = L.Map.Make (Key) (L.Rooted (Text) ()) () in
  let[@inline never] make () =
    for i = 1 to 200 do
      let l = F.of_list (List.init 100 Fun.id) in
      if i land 1 = 0 then ignore (F.rev l)
    done;
    ignore (List.fold_left (fun t k -> G.add k (string_of_int k) t) (G.create ()) (List.init 1000 Fun.id))
  in
  make ();
  collect ();
  check "forgotten owners are freed" (F.live () = 0 && G.live () = 0);
  whole "forgotten" (F.check ());
  (* By itself, since memory outside the heap makes the collector's cycles come: owners that have become old. *)
  let recent = Array.make 50 (F.create ()) in
  for i = 1 to 3000 do
    let l = ref (F.create ()) in
    for n = 1 to 2000 do l := F.cons n !l done;
    recent.(i mod 50) <- !l
  done;
  let memory = F.memory () in
  let late = Sys.ocaml_release.major = 5 && Sys.ocaml_release.minor < 4 (* finalisers run some cycles later *) in
  check "forgotten owners do not pile up" (memory < if late then 96 lsl 20 else 48 lsl 20);
  for i = 1 to 3000 do
    let l = ref (F.create ()) in
    for n = 1 to 2000 do l := F.cons n !l done;
    recent.(i mod 50) <- !l
  done;
  check "nor later" (F.memory () < memory * 3 / 2 + (8 lsl 20));
  (* What comes and goes in order costs no cycles. *)
  collect ();
  let majors () = (Gc.quick_stat ()).major_collections in
  let before = majors () in
  for _ = 1 to 2000 do
    let l = ref (F.create ()) in
    for n = 1 to 2000 do l := F.cons n !l done;
    F.close !l
  done;
  check "no cycles" (majors () - before < 10)

(* A borrow that is kept is of its type. *)
let stale () =
  let module P = Lists.Make (Ints) () in
  let keep _ =
    let l = P.of_list (List.init 50 Fun.id) in
    let view = P.borrow l Fun.id in
    P.close l;
    view
  in
  let kept = Array.init 20 keep in
  let sum () =
    Array.iter
      (fun view ->
        let rec go n = function
          | x :: rest when n > 0 ->
              if not (Obj.is_int (Obj.repr x)) then check "of its type" false;
              go (n - 1) rest
          | _ -> ()
        in
        go 1000 view)
      kept
  in
  sum ();
  for i = 1 to 200 do
    let l = P.of_list (List.init (below 100) Fun.id) in
    let l = if i land 1 = 0 then P.rev l else P.sort compare l in
    if i land 3 <> 0 then P.close l;
    sum ();
    Gc.minor ();
    if i mod 50 = 0 then Gc.compact ()
  done;
  check "stale" (Array.length kept = 20)

let poisoned () =
  List.iter
    (fun (what, read) ->
      let child =
        in_child (fun () ->
            L.poison true;
            let l = N.of_list [ 1; 2; 3 ] in
            let view = N.borrow l Fun.id in
            N.close l;
            ignore (opaque (read (opaque view)));
            0)
      in
      let ended = match child with Unix.WSIGNALED _ -> true | _ -> false in
      check (what ^ " of a freed cell ends the process") ended)
    [
      ("reading", List.length); ("a comparison", compare [ 1; 2; 3 ]);
      ("equality", fun l -> Bool.to_int (l = [ 1; 2 ])); ("the hash", Hashtbl.hash);
      ("marshalling", fun l -> String.length (Marshal.to_string l []));
    ];
  (* A string is no pointer: it is found when it is asked for, whatever its length. *)
  let module S = Lists.Make (L.Text) () in
  let texts = List.map (fun n -> String.make n 't') [ 0; 1; 7; 8; 60; 495; 496; 1000 ] in
  L.poison true;
  let l = S.of_list texts and kept = S.of_list texts in
  let stale = S.borrow l (List.map Fun.id) in
  S.close l;
  List.iter
    (fun s ->
      raises "a text that has gone, borrowed" L.Moved (fun () -> L.Text.peek s);
      raises "a text that has gone" L.Moved (fun () -> L.Text.get s))
    stale;
  check "those that are there" (S.borrow kept (List.map L.Text.peek) = texts && S.to_list kept = texts);
  let l = S.of_list texts in
  check "cells that are used again" (S.borrow l (List.map L.Text.peek) = texts && S.to_list l = texts);
  L.poison false;
  List.iter S.close [ l; kept ];
  check "no text is left" (L.Text.live () = 0);
  whole "texts" (L.Text.check ())

(* --- memory ------------------------------------------------------------------------------------------------------- *)

let resident () =
  let file = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line file) "%d %d" (fun _ r -> r) in
  close_in file;
  pages * 4096

external collapse : unit -> int = "linear_test_collapse"

let memory () =
  let module P = Lists.Make (Ints) () in
  let fill () = let l = ref (P.create ()) in for i = 1 to 2_000_000 do l := P.cons i !l done; !l in
  let before = resident () in
  let l = fill () in
  let full = resident () in
  check "there are cells" (full - before > 40 lsl 20);
  let pages = P.memory () in
  P.close l;
  ignore (P.trim ());
  let back () = if variant then check "memory goes back" (resident () - before < (full - before) / 4) in
  back ();
  ignore (collapse ());
  back ();
  let l = fill () in
  check "and is used again" (P.memory () = pages);
  P.close l;
  whole "memory" (P.check ())

let failing () =
  let module P = Lists.Make (L.Rooted (Text) ()) () in
  let module M = L.Map.Make (Key) (L.Rooted (Text) ()) () in
  let l = ref (P.of_list [ "a"; "b" ]) and t = ref (M.add 1 "a" (M.create ())) in
  let n = ref 2 in
  for i = 1 to 300_000 do
    if i land 8191 = 0 then ignore (fail (-1));
    (match P.cons (string_of_int i) !l with
    | l' -> l := l'; incr n
    | exception Out_of_memory -> ());
    (match M.add i "b" !t with t' -> t := t' | exception Out_of_memory -> ());
    if i land 8191 = 500 then ignore (fail 0)
  done;
  ignore (fail 0);
  check "the list is whole" (P.live () = !n && P.length !l = !n && List.length (P.to_list !l) = !n);
  check "the map is whole" (M.live () = M.length !t && M.fold (fun _ _ n -> n + 1) !t 0 = M.length !t);
  whole "list" (P.check ());
  whole "map" (M.check ())

(* With a limit on address space. *)
let little () =
  let l = ref (N.create ()) in
  let rec fill () =
    match for _ = 1 to 100_000 do l := N.cons 1 !l done with
    | () -> fill ()
    | exception Out_of_memory -> ()
  in
  fill ();
  let n = N.length !l in
  check "much was possible" (n > 1_000_000);
  check "all are there" (N.fold ( + ) 0 !l = n);
  l := N.rev !l;
  (match N.uncons !l with Some (_, l') -> l := N.cons 2 l' | None -> check "not empty" false);
  whole "little" (N.check ())

let forks () =
  let l = ref (list 1000) in
  let child =
    in_child (fun () ->
        let l = N.rev !l in
        let l = List.fold_left (fun l n -> N.cons n l) l (List.init 1000 Fun.id) in
        if N.length l = 2000 && N.check () = "" then 7 else 1)
  in
  check "a child has its own" (child = Unix.WEXITED 7);
  l := N.cons 5 !l;
  check "and leaves ours alone" (N.length !l = 1001 && N.borrow !l List.hd = 5)
