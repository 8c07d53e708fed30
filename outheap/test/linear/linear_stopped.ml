(* SPDX-License-Identifier: MIT *)
(* Operations that are stopped in the middle: at each allocation, and where the stack ends. *)
open Linear_checks
open Linear_endings

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
