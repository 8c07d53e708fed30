(* SPDX-License-Identifier: MIT *)
(* What becomes of containers that are forgotten, of what is left of them, and of those that exceptions from outside
   stop in the middle. *)
open Linear_checks

module Name = struct
  include L.Rooted (Text) ()

  let equal = String.equal
  let hash = Hashtbl.hash
  let compare = String.compare
end

module R = Lists.Make (Name) ()
module Q = L.Queue.Make (Name) ()
module M = L.Map.Make (Name) (L.Text) ()
module T = L.Table.Make (Name) (L.Text) ()
module S = T.Sharded

(* Each kind of container, as a value with these functions. [fill] puts [n] elements in, [number] asks for a key. *)
type container = { length : unit -> int; number : int -> bool; add : int -> unit; close : unit -> unit }

let key n = "key " ^ string_of_int n
let up_to n = List.init n key

let of_list n =
  let l = ref (R.of_list (up_to n)) in
  {
    length = (fun () -> R.length !l); number = (fun n -> List.mem (key n) (R.to_list !l));
    add = (fun n -> l := R.cons (key n) !l); close = (fun () -> R.close !l);
  }

let of_queue n =
  let q = Q.create () in
  List.iter (fun k -> Q.push k q) (up_to n);
  {
    length = (fun () -> Q.length q); number = (fun n -> List.mem (key n) (Q.to_list q));
    add = (fun n -> Q.push (key n) q); close = (fun () -> Q.close q);
  }

let of_map n =
  let t = ref (List.fold_left (fun t k -> M.add k k t) (M.create ()) (up_to n)) in
  {
    length = (fun () -> M.length !t); number = (fun n -> M.mem (key n) !t);
    add = (fun n -> t := M.add (key n) "value" !t); close = (fun () -> M.close !t);
  }

let of_table ?most n =
  let t = T.create ?most () in
  List.iter (fun k -> T.replace k k t) (up_to n);
  {
    length = (fun () -> T.length t); number = (fun n -> T.find (key n) t <> None);
    add = (fun n -> T.replace (key n) "value" t); close = (fun () -> T.close t);
  }

let of_parts n =
  let t = S.create ~shards:4 () in
  List.iter (fun k -> S.replace k k t) (up_to n);
  {
    length = (fun () -> S.length t); number = (fun n -> S.find (key n) t <> None);
    add = (fun n -> S.replace (key n) "value" t); close = (fun () -> S.close t);
  }

let kinds =
  [
    ("list", of_list); ("queue", of_queue); ("map", of_map); ("table", fun n -> of_table n);
    ("cache", fun n -> of_table ~most:1000 n); ("parts", of_parts);
  ]

let live () = R.live () + Q.live () + M.live () + T.live ()

let nothing_is_left what =
  collect ();
  check (what ^ ": nothing is left") (live () = 0 && L.Text.live () = 0);
  List.iter (whole what) [ R.check (); Q.check (); M.check (); T.check (); L.Text.check () ]

(* It works, or says that it was consumed; it is not empty. *)
let works_or_moved what size c =
  match c.length () with
  | n ->
      check (what ^ ": its length") (n = size);
      check (what ^ ": its elements") (c.number 0 && c.number (size - 1) && not (c.number size));
      c.add size;
      check (what ^ ": one more") (c.number size);
      true
  | exception L.Moved ->
      raises (what ^ ": asked") L.Moved (fun () -> c.number 0);
      raises (what ^ ": changed") L.Moved (fun () -> c.add 1);
      raises (what ^ ": closed") L.Moved c.close;
      false

(* --- who gets at a container that was forgotten ------------------------------------------------------------------- *)

(* Finalisers of the program: one was attached before the container's, and one after it, so that in whatever order they
   run, some come before and some after. *)
let by_finalisers (what, make) =
  let found = ref [] and again = ref [] in
  let use c =
    found := works_or_moved (what ^ " in a finaliser") 20 c :: !found;
    again := c :: !again
  in
  let[@inline never] forget () =
    for _ = 1 to 10 do
      let before = ref None in
      Gc.finalise (fun r -> Option.iter use !r) before;
      let c = make 20 in
      before := Some c;
      Gc.finalise (fun r -> use !r) (ref c)
    done
  in
  forget ();
  collect ();
  check (what ^ ": the finalisers have run") (List.length !found = 20);
  check (what ^ ": some were whole, some were freed") (List.exists Fun.id !found && List.exists not !found);
  (* What the program has kept was freed. *)
  List.iter (fun c -> check (what ^ " that came back") (not (works_or_moved what 21 c))) !again;
  again := [];
  nothing_is_left what

(* Weak pointers lead to what has finalisers until these have run. *)
let by_weak_pointers ?most () =
  let all = Weak.create 50 and freed = ref 0 in
  let[@inline never] forget () =
    for i = 0 to 49 do
      let t = T.create ?most () in
      List.iter (fun k -> T.replace k k t) (up_to 20);
      Weak.set all i (Some t)
    done
  in
  let[@inline never] use () =
    for i = 0 to 49 do
      match Weak.get all i with
      | None -> ()
      | Some t -> (
          match T.find (key (i mod 20)) t with
          | v -> check "found by a weak pointer" (v = Some (key (i mod 20)) && T.check_table t = "")
          | exception L.Moved ->
              incr freed;
              raises "length" L.Moved (fun () -> T.length t);
              raises "replace" L.Moved (fun () -> T.replace "a" "b" t))
    done
  in
  (* A look at one keeps it in the cycle that has begun; which one finds it depends on the version. *)
  for cycles = 1 to 4 do
    forget ();
    for _ = 1 to cycles do Gc.major () done;
    use ()
  done;
  check "some were freed, and found" (!freed > 0);
  nothing_is_left "weak pointers"

(* A finaliser that reads a container, while the domain that has made it runs the container's own: if that domain was
   the first to see that it is forgotten. *)
let while_another_domain_frees () =
  let size = 1000 in
  let made = Atomic.make None and waits = Atomic.make false and reading = Atomic.make false in
  let freed = Atomic.make false and sum = ref 0 in
  let until condition = while not (Atomic.get condition) do Thread.yield () done in
  let fill v =
    let t = T.create () in
    for n = 0 to size - 1 do T.replace (key n) (v n) t done;
    t
  in
  let[@inline never] prepare () =
    Atomic.set made (Some (fill string_of_int));
    (* While a finaliser runs, no other one of its domain does. *)
    Gc.finalise (fun _ -> Atomic.set waits true; until reading) (ref 0)
  in
  let other () =
    prepare ();
    while not (Atomic.get waits) do Gc.full_major () done;
    collect ();
    let t = fill (fun _ -> "1000000") in
    Atomic.set freed true;
    T.close t
  in
  let join = Linear_domains.spawn other in
  until waits;
  let[@inline never] forget () =
    let t = Option.get (Atomic.exchange made None) in
    let once = ref true in
    let read _ v n =
      if !once then begin
        once := false;
        Atomic.set reading true;
        until freed
      end;
      n + int_of_string v
    in
    Gc.finalise (fun r -> sum := T.fold read !r 0) (ref t)
  in
  forget ();
  collect ();
  join ();
  check "what was read" (!sum = size * (size - 1) / 2);
  nothing_is_left "finalisers of two domains"

(* --- many, and rings ---------------------------------------------------------------------------------------------- *)

let many () =
  let[@inline never] forget () =
    for n = 1 to 10_000 do ignore (opaque (snd (List.nth kinds (n mod List.length kinds)) (n land 3))) done
  in
  forget ();
  nothing_is_left "many"

(* A container that holds itself is not forgotten, until it holds itself no more. *)
let rings () =
  let module O = L.Queue.Make (L.Rooted (struct type t = Obj.t end) ()) () in
  let inside = Weak.create 1 in
  let[@inline never] forget () =
    let q = O.create () in
    let held = ref q in
    Weak.set inside 0 (Some held);
    O.push (Obj.repr held) q;
    O.push (Obj.repr (String.make 3 'a')) q
  in
  forget ();
  collect ();
  check "it is there" (O.live () = 2);
  let[@inline never] unlink () = Option.iter (fun held -> ignore (O.pop !held)) (Weak.get inside 0) in
  unlink ();
  collect ();
  check "it is forgotten" (O.live () = 0)

(* Values whose finalisers use the container that held them, in the middle of whatever it does. *)
let used_by_finalisers () =
  let module V = L.Rooted (struct type t = int ref end) () in
  let module T =
    L.Table.Make (Ints_hashed) (V) ()
  in
  let t = T.create () and worked = ref 0 and told = ref 0 in
  let use v =
    match T.replace (1000 + !v) (ref !v) t with
    | () -> incr worked
    | exception L.Borrowed -> incr told
    | exception L.Moved -> () (* at the end *)
  in
  let make n =
    let v = ref n in
    Gc.finalise use v;
    v
  in
  let rounds = 20_000 in
  for n = 1 to rounds do
    T.replace (n mod 100) (make n) t;
    if n mod 50 = 0 then T.remove (n mod 7) t;
    if n mod 600 = 0 then Gc.full_major ();
    if n mod 1000 = 0 then
      T.iter
        (fun k v ->
          if k < 100 then check "of its key" (!v mod 100 = k);
          if k = 50 then Gc.full_major ())
        t
  done;
  collect ();
  check "they were told, or have worked" (!worked > 0 && !told > 0 && !worked + !told > rounds * 9 / 10);
  check "all they added" (T.fold (fun k v n -> if k >= 1000 && !v + 1000 = k then n + 1 else n) t 0 = !worked);
  whole "table" (T.check_table t);
  T.close t;
  check "nothing is left" (T.live () = 0)

(* --- what is left of elements ------------------------------------------------------------------------------------- *)

(* The number of an element that has gone leads to another value of its type, or to none. *)
let stale_numbers () =
  let long n = String.make 600 'l' ^ string_of_int n in
  let module X = Lists.Make (L.Text) () in
  let l = R.of_list (up_to 100) and x = X.of_list (List.init 100 long) in
  let numbers = R.borrow l (List.map Fun.id) and texts = X.borrow x (List.map Fun.id) in
  check "numbers, while they are there" (List.map Name.get numbers = up_to 100);
  check "texts, while they are there" (List.map L.Text.peek texts = List.init 100 long);
  R.close l;
  X.close x;
  List.iter (fun n -> raises "a number that is free" L.Moved (fun () -> Name.get n)) numbers;
  List.iter (fun n -> raises "a long text that has gone" L.Moved (fun () -> L.Text.get n)) texts;
  List.iter (fun n -> raises "a long text that has gone, borrowed" L.Moved (fun () -> L.Text.peek n)) texts;
  let l = R.of_list (List.init 60 (fun _ -> "other")) in
  let there = ref 0 in
  let look n = match Name.get n with s -> incr there; check "another" (s = "other") | exception L.Moved -> () in
  List.iter look numbers;
  check "as many as there are" (!there = 60);
  R.close l;
  nothing_is_left "stale numbers"

(* Owners are no values to compare or to write; they are refused before anything of theirs is looked at. *)
let not_values () =
  L.poison true;
  let q = Q.create () and t = T.create ~most:5 () and p = S.create ~shards:2 () in
  List.iter (fun k -> Q.push k q; T.replace k k t; S.replace k k p) (up_to 9);
  while Q.pop q <> None do () done;
  let l = R.of_list (up_to 1000) and m = M.add "a" "b" (M.create ()) in
  let l' = R.of_list (up_to 1000) and t' = T.create ~most:5 () in
  let refuses what v v' =
    refused ("comparing a " ^ what) (fun () -> compare v v');
    refused ("equality of a " ^ what) (fun () -> v = v');
    let marshalled flags = refused ("marshalling a " ^ what) (fun () -> Marshal.to_string v flags) in
    List.iter marshalled [ []; [ Closures ] ]
  in
  refuses "list" l l';
  refuses "queue" q (Q.create ());
  refuses "map" m (M.create ());
  refuses "table" t t';
  refuses "table in parts" p (S.create ~shards:2 ());
  check "what is one is not looked at" (compare l l = 0 && compare t t = 0);
  ignore (List.map Hashtbl.hash [ Obj.repr l; Obj.repr q; Obj.repr m; Obj.repr t; Obj.repr p ]);
  L.poison false;
  R.close l;
  R.close l';
  M.close m;
  List.iter T.close [ t; t' ];
  S.close p;
  nothing_is_left "not values"

let endings () =
  List.iter by_finalisers kinds;
  by_weak_pointers ();
  by_weak_pointers ~most:30 ();
  (* OCaml 5.1 loses finalisers there (docs/internals/upstream.md). *)
  if Linear_domains.several > 1 && (Sys.ocaml_release.major, Sys.ocaml_release.minor) > (5, 1) then
    for _ = 1 to 8 do while_another_domain_frees () done;
  many ();
  rings ();
  used_by_finalisers ();
  stale_numbers ();
  not_values ()

(* --- stopped in the middle ---------------------------------------------------------------------------------------- *)

(* Each operation of a container of 10 elements is stopped at each place where it allocates, in turn: then the container
   is as it was, or consumed, and can be used. [contents] closes it. *)
let at_each_place what make contents operations =
  List.iter
    (fun (name, f) ->
      let what = what ^ ", " ^ name in
      let rec go place =
        let c = make () in
        match stopping place (fun () -> f c) with
        | Some () -> ()
        | None ->
            (match contents c with
            | l -> check (what ^ ": as it was") (l = up_to 10)
            | exception L.Moved -> ());
            go (place + 1)
      in
      go 1;
      nothing_is_left what)
    operations

let lists_at_each_place () =
  let contents l =
    let all = R.to_list l in
    R.close l;
    all
  in
  let close l = R.close l in
  let with_another f l =
    let l' = R.of_list [ "x"; "y" ] in
    match f l l' with
    | l -> close l
    | exception Exit ->
        armed := false;
        (* The other one, too. *)
        (match R.to_list l' with
        | all -> check "the second list: as it was" (all = [ "x"; "y" ]); R.close l'
        | exception L.Moved -> ());
        raise Exit
  in
  at_each_place "list" (fun () -> R.of_list (up_to 10)) contents
    [
      ("cons", fun l -> close (R.cons "a" l)); ("uncons", fun l -> Option.iter (fun (_, l) -> close l) (R.uncons l));
      ("rev", fun l -> close (R.rev l)); ("append", with_another R.append); ("rev_append", with_another R.rev_append);
      ("append to", with_another (fun l l' -> R.append l' l));
      ("sort", fun l -> close (R.sort (fun a b -> String.compare b a) l)); ("map", fun l -> close (R.map Fun.id l));
      ("filter", fun l -> close (R.filter (fun _ -> true) l)); ("close", close);
      ("partition", fun l -> let l, others = R.partition (fun _ -> false) l in close l; close others);
      ("iter", fun l -> R.iter ignore l; close l); ("to_list", fun l -> ignore (R.to_list l); close l);
      ("borrow", fun l -> ignore (R.borrow l (fun view -> List.map Fun.id view)); close l);
    ]

let queues_at_each_place () =
  let make () =
    let q = Q.create () in
    List.iter (fun k -> Q.push k q) (up_to 10);
    q
  in
  let contents q =
    let all = Q.to_list q in
    Q.close q;
    all
  in
  at_each_place "queue" make contents
    [
      ("push", fun q -> Q.push "a" q; Q.close q); ("peek", fun q -> ignore (Q.peek q); Q.close q);
      ("pop", fun q -> ignore (opaque (Q.pop q)); armed := false; Q.close q);
      ("transfer", fun q -> let q' = Q.create () in Q.transfer q q'; armed := false; Q.close q; Q.close q');
    ]

let maps_at_each_place () =
  let make () = List.fold_left (fun t k -> M.add k k t) (M.create ()) (up_to 10) in
  let contents t =
    let all = M.fold (fun k _ l -> k :: l) t [] in
    M.close t;
    List.rev all
  in
  at_each_place "map" make contents
    [
      ("add", fun t -> M.close (M.add "a" "b" t)); ("replace", fun t -> M.close (M.add (key 3) (key 3) t));
      ("remove", fun t -> M.close (M.remove (key 3) t)); ("find", fun t -> ignore (M.find (key 3) t); M.close t);
      ("min", fun t -> ignore (M.min_binding t); M.close t); ("close", fun t -> M.close t);
      ("fold", fun t -> ignore (M.fold (fun k _ l -> k :: l) t []); M.close t);
    ]

let tables_at_each_place most =
  let make () =
    let t = T.create ?most () in
    List.iter (fun k -> T.replace k k t) (up_to 10);
    t
  in
  let contents t =
    whole "a table that was stopped" (T.check_table t);
    let all = T.fold (fun k _ l -> k :: l) t [] in
    T.close t;
    List.sort compare all
  in
  at_each_place "table" make contents
    [
      ("replace", fun t -> T.replace (key 3) (key 3) t; T.close t);
      ("find", fun t -> ignore (T.find (key 3) t); T.close t);
      ("mem", fun t -> ignore (T.mem (key 3) t); T.close t); ("remove", fun t -> T.remove "no key" t; T.close t);
      ("filter", fun t -> T.filter (fun _ _ -> true) t; T.close t); ("close", fun t -> T.close t);
      ("fold", fun t -> ignore (T.fold (fun k _ l -> k :: l) t []); T.close t);
    ]

(* Freeing many elements takes a while, in which signals are handled: then all are freed before the exception passes. *)
let freeing_goes_on () =
  let size = 30_000 in
  let on = ref false in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> if !on then begin on := false; raise Exit end));
  let set delay = ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = delay }) in
  let tried (what, f) =
    let stopped = ref 0 in
    let rec go tries =
      let finished = f () in
      match set (float (1 + (tries mod 20)) *. 0.0001); on := true; finished `Now; on := false with
      | () -> more tries finished
      | exception Exit -> incr stopped; more tries finished
    and more tries finished =
      set 0.;
      finished `Check;
      if !stopped < 5 && tries < 200 then go (tries + 1)
    in
    go 1;
    check (what ^ ": it was stopped") (!stopped > 0);
    nothing_is_left what
  in
  let closed (what, make) =
    ( what ^ " that is closed",
      fun () ->
        let c = make size in
        function
        | `Now -> c.close ()
        | `Check ->
            (* The signal may have come before. *)
            (match c.length () with
            | n -> check (what ^ ": as it was") (n = size); c.close ()
            | exception L.Moved -> raises (what ^ ": it is closed") L.Moved c.close);
            check (what ^ ": all is freed") (live () = 0 && L.Text.live () = 0) )
  in
  let cleared most () =
    let t = T.create ?most () in
    List.iter (fun k -> T.replace k k t) (up_to size);
    function
    | `Now -> T.clear t
    | `Check ->
        if T.length t = size then T.clear t;
        check "it is empty" (T.length t = 0 && T.live () = 0);
        T.replace "a" "b" t;
        check "it can be used" (T.find "a" t = Some "b" && T.check_table t = "");
        T.close t
  in
  List.iter tried
    (List.map closed [ List.nth kinds 0; List.nth kinds 1; List.nth kinds 2; List.nth kinds 3 ]
    @ [ ("table that is cleared", cleared None); ("cache that is cleared", cleared (Some size)) ]);
  Sys.set_signal Sys.sigalrm Sys.Signal_default

(* Calls a function with so many calls around it. *)
let rec at depth f = if depth = 0 then f () else let r = at (depth - 1) f in opaque r

(* With a small stack: [f] gets the largest depth at which a function can be called. *)
let near_the_end_of_the_stack f =
  let limit = (Gc.get ()).stack_limit in
  Gc.set { (Gc.get ()) with stack_limit = 65536 };
  let fits depth = match at depth ignore with () -> true | exception Stack_overflow -> false in
  let rec deepest low high =
    if high - low <= 1 then low
    else
      let middle = (low + high) / 2 in
      if fits middle then deepest middle high else deepest low middle
  in
  f (deepest 0 10_000_000);
  Gc.set { (Gc.get ()) with stack_limit = limit }

(* The stack ends in the middle of an operation, at each place in turn. *)
let where_the_stack_ends () =
  near_the_end_of_the_stack (fun deepest ->
      let stopped = ref 0 in
      let tried depth f = match at depth f with () -> () | exception Stack_overflow -> incr stopped in
      List.iter
        (fun (what, make) ->
          for above = 0 to 100 do
            let c = make 20 in
            tried (deepest - above) (fun () -> c.add 20);
            let added = c.length () = 21 in
            let there = c.number 0 && c.number 19 && c.number 20 = added in
            check (what ^ ": what there was") (there && (added || c.length () = 20));
            if what <> "parts" then tried (deepest - above) c.close;
            match c.length () with
            | n -> check (what ^ ": not closed") (n = if added then 21 else 20); c.close ()
            | exception L.Moved -> ()
          done;
          nothing_is_left what)
        kinds;
      check "the stack has ended" (!stopped > 100))

let stopped () =
  with_stops (fun () ->
      lists_at_each_place ();
      queues_at_each_place ();
      maps_at_each_place ();
      tables_at_each_place None;
      tables_at_each_place (Some 100));
  if Sys.backend_type = Sys.Native then freeing_goes_on ();
  if Sys.backend_type = Sys.Native && ocaml5 then where_the_stack_ends ()
