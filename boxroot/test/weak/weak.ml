(* SPDX-License-Identifier: MIT *)
(* Weak roots: they hold what is alive, with what it contains; they are dead once that is not, for ever; they keep
   nothing alive. They are deleted anywhere, their memory is used again. *)

open Root

type weak = int

external create : 'a -> weak = "w_create"
external get : weak -> 'a option = "w_get"
external is_alive : weak -> bool = "w_is_alive" [@@noalloc]
external upgrade : weak -> Root.t = "w_upgrade"
external delete : weak -> unit = "w_delete"
external delete_nolock : weak -> unit = "w_delete_nolock"
external delete_elsewhere : weak array -> unit = "w_delete_elsewhere"
external error : unit -> string = "w_error"
external eperm : unit -> unit = "w_eperm"
external arm : int -> int -> unit = "o_arm"
external disarm : unit -> unit = "o_disarm"
external failures : unit -> int = "o_failures"

external raw_create : 'a -> weak = "w_create"

let create v = match create v with 0 -> fail "no weak root: %s" (error ()) | w -> w

(* --- the model ---------------------------------------------------------------------------------------------------- *)

type entry = {
  weak : weak;
  kind : Values.kind;
  id : int;
  aux : int;
  mutable held : Obj.t option;
  mutable root : Root.t; (* or none *)
  mutable dead : bool; (* as was seen *)
}

let player ~alone seed steps =
  let rng = Random.State.make [| seed |] in
  let rnd n = Random.State.int rng n in
  let entries : entry option array = Array.make 3000 None in
  let left = ref steps in
  let wrong e what =
    fail "seed %d, %d steps left: %s %d: %s" seed !left (Values.name e.kind) e.id what in
  let is_right e v = Values.is e.kind e.id e.aux v in
  let may_be_dead e = e.held = None && e.root = none && not (Values.lasts e.kind e.id) in
  let found e = function
    | Some v ->
        if e.dead then wrong e "was dead, and is alive";
        if not (is_right e v) then wrong e "another value"
    | None ->
        if not (may_be_dead e) then wrong e "dead, and should not be";
        e.dead <- true
  in
  let check e = found e (get e.weak) in
  let remove_root e = if e.root <> none then (Root.delete e.root; e.root <- none) in
  let put i =
    let kind = Values.mortal.(rnd (Array.length Values.mortal)) and id = rnd 100_000 in
    let v = Values.make kind id in
    let aux = if Values.has_cell kind then Values.custom_cell v else 0 in
    let held = if rnd 2 = 0 then Some v else None in
    let e = { weak = create v; kind; id; aux; held; root = none; dead = false } in
    keep v;
    entries.(i) <- Some e
  in
  let remove i e =
    remove_root e;
    (match rnd 8 with
     | 0 -> delete_nolock e.weak
     | 1 -> delete_elsewhere [| e.weak |]
     | _ -> delete e.weak);
    entries.(i) <- None
  in
  let upgrade e =
    remove_root e;
    match upgrade e.weak with
    | 0 -> found e None
    | r ->
        found e (Some (Root.get r));
        if rnd 3 = 0 then e.root <- r else Root.delete r
  in
  let all_dead () =
    (* what is held by nobody must be dead after a full collection *)
    collect ();
    Array.iter (function
      | Some e when may_be_dead e ->
          if is_alive e.weak then wrong e "still alive" else e.dead <- true
      | Some e -> check e
      | None -> ()) entries
  in
  while !left > 0 do
    decr left;
    let i = rnd (Array.length entries) in
    (match entries.(i), rnd 12 with
     | None, _ -> put i
     | Some e, (0 | 1 | 2) -> remove i e
     | Some e, (3 | 4 | 5) -> check e
     | Some e, (6 | 7) -> upgrade e
     | Some e, 8 -> remove_root e
     | Some e, 9 -> (match get e.weak with Some v -> e.held <- Some v | None -> found e None)
     | Some e, _ -> e.held <- None);
    match rnd 400 with
    | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 -> Gc.minor ()
    | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 -> ignore (Gc.major_slice 200)
    | 16 -> if alone && rnd 20 = 0 then all_dead () else Thread.yield ()
    | 17 -> if rnd 40 = 0 then Root.compact ()
    | 18 -> if rnd 20 = 0 then collect ()
    | 19 ->
        (* many at once, so that pools fill and empty *)
        let n = 1 + rnd 1500 in
        let some = Array.init n (fun j -> let s = text j in let w = create s in (s, w)) in
        Array.iteri (fun j (s, w) ->
          (match get w with
           | Some t when t == s -> ()
           | _ -> fail "seed %d, %d steps left: text %d of %d" seed !left j n)) some;
        let weaks = Array.map snd some in
        if rnd 2 = 0 then Array.iter delete weaks else delete_elsewhere weaks
    | _ -> ()
  done;
  Array.iteri (fun i -> Option.iter (remove i)) entries

let steps = scale 200_000

(* One in `part` of the steps. Domains wait for one another, and take long. *)
let model ~part ~domains ~threads () =
  if domains > 1 && Values.loses_arrays then skip "only the first domain makes weak roots";
  let each = steps / part / threads / if domains > 1 then 4 else 1 in
  Players.all ~domains ~threads (fun n -> player ~alone:(domains = 1 && threads = 1) (Players.seed + n) each)

(* --- what weak roots are for -------------------------------------------------------------------------------------- *)

type obj

external obj : unit -> obj = "w_object"
external obj_set : obj -> (unit -> int) -> bool -> unit = "w_object_set"
external obj_call : obj -> int = "w_object_call"
external finalised : unit -> int = "w_finalised"

(* A closure holds an object of C, which holds the closure. *)
let make_cycle ~strong i =
  let o = obj () in
  let f () = keep o; i in
  obj_set o f strong;
  if obj_call o <> i then fail "called something else";
  f

let cycles () =
  let n = 1000 in
  for i = 1 to n do keep (make_cycle ~strong:true i) done;
  collect ();
  if finalised () <> 0 then fail "%d of the cycles with a root were collected" (finalised ());
  let alive = Array.init n (fun i -> make_cycle ~strong:false i) in
  collect ();
  if finalised () <> 0 then fail "%d were collected too early" (finalised ());
  Array.iteri (fun i f -> if f () <> i then fail "closure %d" i) alive;
  keep alive;
  collect ();
  collect ();
  if finalised () <> n then fail "of %d cycles with a weak root %d were collected" n (finalised ())

(* --- semantics ---------------------------------------------------------------------------------------------------- *)

let basics () =
  let v = text 1 in
  let w = create v and w' = create v in
  if get w <> Some (text 1) || not (match get w with Some x -> x == v | None -> false) then fail "another value";
  collect ();
  if get w <> Some (text 1) then fail "dead though it is held";
  let r = upgrade w in
  keep v;
  collect ();
  if get w <> Some (text 1) then fail "dead though there is a root";
  Root.delete r;
  collect ();
  if get w <> None || get w' <> None || upgrade w <> none then fail "alive";
  delete w;
  collect ();
  if get w' <> None then fail "alive again";
  delete w';
  let w = create 5 and w0 = create (c_static ()) in
  collect ();
  if get w <> Some 5 then fail "an immediate value";
  if not (match get w0 with Some x -> x == c_static () | None -> false) then fail "a static value";
  delete w;
  delete w0;
  eperm ()

(* Alive in its own finaliser, and afterwards not, unless that stored it; dead in that of Gc.finalise_last. *)
let finalisers () =
  let seen = ref [] and stored = ref [] in
  let make i =
    let v = ref i in
    let w = create v in
    Gc.finalise (fun v ->
      (match get w with Some x when x == v -> seen := i :: !seen | _ -> fail "dead in its finaliser");
      if i mod 2 = 0 then stored := v :: !stored) v;
    w
  in
  let weaks = List.init 100 make in
  collect ();
  collect ();
  if List.length !seen <> 100 then fail "%d finalisers" (List.length !seen);
  List.iteri (fun i w -> if is_alive w <> (i mod 2 = 0) then fail "value %d" i) weaks;
  keep !stored;
  List.iter delete weaks;
  let last = ref 0 in
  let make i =
    let v = ref i in
    let w = create v in
    Gc.finalise_last (fun () -> incr last; if get w <> None then fail "alive in the last finaliser") v;
    w
  in
  let weaks = List.init 100 make in
  collect ();
  if !last <> 100 then fail "%d last finalisers" !last;
  List.iter delete weaks

(* A value that was found dead or alive in the middle of a cycle: what get returns is whole. A weak read may be all that
   holds a value while the collector marks. *)
let in_the_middle () =
  let n = 2000 in
  for round = 1 to scale 60 do
    let weaks = Array.init n (fun i -> create (text i, [ text (i + 1) ])) in
    Gc.minor ();
    let found = Array.make n None in
    for i = 0 to n - 1 do
      if i mod 20 = 0 then ignore (Gc.major_slice (1 + (round * 37 mod 3000)));
      found.(i) <- get weaks.(i)
    done;
    Gc.minor ();
    ignore (Gc.major_slice 100_000);
    if round mod 3 = 0 then collect ();
    let alive = ref 0 in
    Array.iteri (fun i v ->
      match v with
      | Some v -> incr alive; if v <> (text i, [ text (i + 1) ]) then fail "round %d: value %d" round i
      | None -> if is_alive weaks.(i) then fail "value %d lives again" i) found;
    keep found;
    Array.iter delete weaks
  done

(* Lazy values are refused, forced or not, young or old; what holds one is not. Its result may take its place there. *)
let lazies () =
  let refused what l =
    let said = "boxroot_weak_create, or boxroot_ephemeral_create for a key, was called with a lazy value" in
    if raw_create l <> 0 || not (String.starts_with ~prefix:said (error ())) then fail "%s: %s" what (error ())
  in
  let fresh () = lazy (text 1 ^ "!") in
  let forced () = let l = fresh () in ignore (Lazy.force l); l in
  refused "young" (fresh ());
  refused "young and forced" (forced ());
  let l = fresh () and f = forced () and x = lazy (float_of_string "1.5") in
  ignore (Lazy.force x);
  refused "forced to a float" x;
  Gc.minor ();
  refused "old" l;
  ignore (Lazy.force l);
  refused "old, forced" l;
  ignore f;
  let rec itself = lazy (refused "while it is forced" itself; 5) in
  ignore (Lazy.force itself);
  for round = 1 to scale 50 do
    let all = Array.init 500 (fun i -> let s = text i in (i, lazy (keep round; s ^ "!"))) in
    let weaks = Array.map create all in
    for i = 0 to 499 do
      if i mod 50 = 0 then ignore (Gc.major_slice 500);
      if i mod 2 = 0 then ignore (Lazy.force (snd all.(i)))
    done;
    if round mod 2 = 0 then collect ();
    Array.iteri (fun i w ->
      match get w with
      | Some (j, l) -> if j <> i || Lazy.force l <> text i ^ "!" then fail "lazy %d" i
      | None -> fail "what holds lazy %d is dead" i) weaks;
    keep all;
    Array.iter delete weaks
  done

(* --- memory ------------------------------------------------------------------------------------------------------- *)

let bounded what step = rises ~steps:(scale 100) ~kb:(if is_checked () then 60_000 else 24_000) what step

(* Were nothing used again, 40 MB after 30 rounds; in pools of four, 100. *)
let many = if pool_capacity () < 100 then 30_000 else 150_000

let memory () =
  let v = text 1 in
  let weaks () = Array.init many (fun i -> if i mod 7 = 0 then create v else create (ref i)) in
  bounded "in order" (fun _ -> Array.iter delete (weaks ()));
  bounded "in blocking sections" (fun _ -> Array.iter delete_nolock (weaks ()));
  bounded "on another thread" (fun _ -> delete_elsewhere (weaks ()));
  bounded "half by half" (fun _ ->
    let all = weaks () in
    delete_elsewhere (Array.of_list (List.filteri (fun i _ -> i mod 2 = 0) (Array.to_list all)));
    Array.iteri (fun i w -> if i mod 2 = 1 then delete w) all);
  if Par.multicore then
    bounded "on another domain" (fun i ->
      let all = weaks () in
      if i mod 4 = 0 then Par.join (Par.spawn (fun () -> Array.iter delete all)) else Array.iter delete all);
  keep v

(* Many, and their number is right. *)
let large () =
  let n = scale 3_000_000 in
  let weaks = Array.init n (fun i -> create (if i mod 1000 = 0 then Obj.repr i else Obj.repr (ref i))) in
  collect ();
  let alive = Array.fold_left (fun k w -> if is_alive w then k + 1 else k) 0 weaks in
  if alive <> (n + 999) / 1000 then fail "%d alive" alive;
  Array.iter delete weaks;
  let distinct = Hashtbl.create 100 in
  let weaks = Array.init 10_000 create in
  Array.iteri (fun i w ->
    if Hashtbl.mem distinct w then fail "a place is used twice";
    Hashtbl.add distinct w ();
    if get w <> Some i then fail "value %d" i) weaks

(* The n-th request for memory fails, or all from the n-th on. A creation fails or does without. *)
let no_memory () =
  let failing = 2 and passing = 3 in
  let attempt mode n =
    let made = ref [] and failed = ref 0 in
    let make i =
      let v = text i in
      match raw_create v with
      | 0 ->
          incr failed;
          if error () <> "no memory for more roots" then fail "said: %s" (error ());
          if !failed > 3 then disarm ()
      | w -> made := (w, i, v) :: !made
    in
    arm mode n;
    for i = 1 to 1500 do make i done;
    disarm ();
    collect ();
    List.iter (fun (w, i, v) -> if get w <> Some (text i) then fail "value %d" i; keep v) !made;
    make 7;
    List.iter (fun (w, _, _) -> delete w) !made;
    if !failed > 0 then failing else if failures () > 0 then 0 else passing
  in
  List.iter (fun mode ->
    let codes = List.init 30 (fun n -> Process.code_of_child (fun () -> attempt mode (n + 1))) in
    let count code = List.length (List.filter (( = ) code) codes) in
    Printf.printf "%d runs in which a creation failed, %d without a failure\n" (count failing) (count passing);
    if count failing < 3 then fail "nothing was tried") [ 1; 2 ]

(* --- domains, threads, forks -------------------------------------------------------------------------------------- *)

(* Weak roots of one domain, which others read, upgrade, and delete. *)
let shared () =
  if not Par.multicore then skip "one domain";
  for round = 1 to scale 12 do
    let n = 3000 in
    let values = Array.init n (fun i -> if i mod 3 = 0 then text i else "") in
    let weaks = Array.init n (fun i -> if i mod 3 = 0 then create values.(i) else create (text i)) in
    let stop = Atomic.make false in
    let look seed () =
      let rng = Random.State.make [| seed; round |] in
      let mine = ref [] in
      while not (Atomic.get stop) do
        let i = Random.State.int rng n in
        (match get weaks.(i) with
         | Some s -> if s <> text i then fail "text %d is %s" i s
         | None -> if i mod 3 = 0 then fail "text %d is dead" i);
        (match upgrade weaks.(i) with
         | 0 -> if i mod 3 = 0 then fail "text %d is dead" i
         | r -> mine := (r, i) :: !mine);
        if List.length !mine > 50 then begin
          List.iter (fun (r, i) -> if Root.get r <> text i then fail "root of %d" i; Root.delete r) !mine;
          mine := []
        end;
        if Random.State.int rng 500 = 0 then Gc.minor ();
        if Random.State.int rng 3000 = 0 then Gc.full_major ()
      done;
      List.iter (fun (r, i) -> if Root.get r <> text i then fail "root of %d" i; Root.delete r) !mine
    in
    let others = List.init 2 (fun s -> Par.spawn (look s)) in
    for _ = 1 to 30 do
      Gc.minor ();
      ignore (Gc.major_slice 3000);
      let more = Array.init 500 create in
      Array.iter delete more;
      nap 300
    done;
    Atomic.set stop true;
    List.iter Par.join others;
    keep values;
    let delete_from d () = Array.iteri (fun i w -> if i mod 3 = d then delete w) weaks in
    let others = List.init 2 (fun d -> Par.spawn (delete_from d)) in
    delete_from 2 ();
    List.iter Par.join others
  done

(* Domains that end leave weak roots. *)
let ending_domains () =
  if not Par.multicore then skip "one domain";
  if Values.loses_arrays then begin
    Par.join (Par.spawn (fun () ->
      let said = "before OCaml 5.5, boxroot_weak_create and boxroot_ephemeral_create must be called on the first" in
      if raw_create 5 <> 0 || not (String.starts_with ~prefix:said (error ())) then fail "%s" (error ())));
    skip "only the first domain makes weak roots"
  end;
  let n = 700 in
  for round = 1 to scale 300 do
    let weaks = Array.make n 0 and values = Array.make n "" in
    let body () =
      for i = 0 to n - 1 do
        let v = text (round + i) in
        if i mod 2 = 0 then values.(i) <- v;
        weaks.(i) <- create v
      done;
      for i = 0 to n - 1 do if i mod 5 = 4 then delete weaks.(i) done;
      if round mod 3 = 0 then Gc.full_major () else ignore (Gc.major_slice (round * 100))
    in
    Par.join (Par.spawn body);
    let check () =
      for i = 0 to n - 1 do
        if i mod 5 <> 4 then
          match get weaks.(i) with
          | Some s -> if s <> text (round + i) then fail "text %d is %s" i s
          | None -> if values.(i) <> "" then fail "text %d is dead" i
      done
    in
    check ();
    ignore (Gc.major_slice 2000);
    check ();
    if round mod 5 = 0 then begin
      collect ();
      check ();
      for i = 0 to n - 1 do if i mod 2 = 1 && i mod 5 <> 4 && is_alive weaks.(i) then fail "%d is alive" i done
    end;
    keep values;
    for i = 0 to n - 1 do if i mod 5 <> 4 then delete weaks.(i) done
  done;
  bounded "domains that end" (fun i ->
    if i mod 4 = 0 then begin
      let weaks = ref [||] and v = text 1 in
      Par.join (Par.spawn (fun () -> weaks := Array.init 3000 (fun _ -> create v)));
      if i mod 8 = 0 then Array.iter delete !weaks else delete_elsewhere !weaks;
      keep v
    end)

external leave_to_destructor : weak -> unit = "w_leave_to_destructor"
external destructors : unit -> int = "w_destructors"

(* Deleted by the destructors of a thread whose domain has ended. *)
let destructors_of_threads () =
  if not Par.multicore || Values.loses_arrays then skip "only the first domain makes weak roots";
  let n = scale 300 in
  for i = 1 to n do
    Par.join (Par.spawn (fun () ->
      leave_to_destructor (create (ref i));
      if i mod 3 = 0 then Gc.full_major ()));
    if i mod 10 = 0 then collect ()
  done;
  while destructors () < n do nap 1000 done

external cxx : int -> 'a Lazy.t -> bool -> int = "w_cxx"

let cplusplus () =
  let l = lazy (text 1) in
  let run dropped = match cxx 3000 l dropped with 0 -> () | wrong -> fail "%d wrong" wrong in
  run false;
  collect ();
  run true

let forked () =
  let v = text 0 in
  let weaks = Array.init 1000 (fun i -> if i mod 2 = 0 then create v else create (text i)) in
  let use () =
    collect ();
    Array.iteri (fun i w -> if get w <> (if i mod 2 = 0 then Some v else None) then fail "value %d" i) weaks;
    let more = Array.init 1000 create in
    Array.iter delete more;
    Array.iter delete weaks
  in
  Process.in_child use;
  Process.in_child (fun () -> delete_elsewhere weaks; keep (Array.init 1000 create));
  use ()

let finaliser_deletes () =
  (* C finalisers delete weak roots in the middle of sweeping and of minor collections *)
  for round = 1 to scale 40 do
    let few = Array.init 20 (fun i -> make_cycle ~strong:false i) in
    for i = 1 to 2000 do keep (make_cycle ~strong:false i) done;
    if round mod 4 = 0 then collect () else ignore (Gc.major_slice 10_000);
    Array.iteri (fun i f -> if f () <> i then fail "closure %d" i) few
  done;
  collect ();
  collect ();
  if finalised () <> scale 40 * 2020 then fail "%d finalised" (finalised ())

let torn_down () =
  let v = text 1 in
  let weaks = Array.init 1000 (fun _ -> create v) in
  for i = 0 to 99 do delete weaks.(i) done;
  Root.teardown ();
  for i = 100 to 999 do if is_alive weaks.(i) then fail "alive after teardown" done;
  for i = 100 to 599 do delete weaks.(i) done;
  if raw_create v <> 0 || error () = "" then fail "created after teardown";
  if not (Root.setup ()) then fail "no second start";
  keep v;
  for round = 1 to 3 do
    let weaks = Array.init 2000 (fun i -> create (i + round)) in
    collect ();
    Array.iteri (fun i w -> if get w <> Some (i + round) then fail "value %d" i) weaks;
    Array.iter delete weaks
  done;
  Root.teardown ()

let at_shutdown () =
  let v = text 1 in
  let w = create v in
  at_exit (fun () -> if get w <> Some (text 1) then fail "dead"; delete w; keep (create v))

external user : 'a -> Obj.t = "w_user"
external say_at_exit : unit -> unit = "w_say_at_exit"

let users = 300
let kept = ref []

let do_keep_users () =
  say_at_exit ();
  kept := List.init users (fun i -> user (text i));
  collect ()

(* A shutdown finalises all that is left in the heap ("c" in OCAMLRUNPARAM); from OCaml 5.0 to 5.3 nothing. *)
let finalisers_at_shutdown () =
  let parameters = Option.value (Sys.getenv_opt "OCAMLRUNPARAM") ~default:"" in
  let ended, said = Process.run_self ~environment:[ "OCAMLRUNPARAM=" ^ parameters ^ ",c" ] "do-keep-users" in
  let finalised, refused =
    match Scanf.sscanf Sys.ocaml_version "%d.%d" (fun major minor -> (major, minor)) with
    | 4, _ -> (users, 0)
    | 5, (0 | 1 | 2 | 3) -> (0, 0)
    | _ -> (users, 2 * users)
  in
  if ended <> Unix.WEXITED 0 || said <> Printf.sprintf "%d finalised, %d refused\n" finalised refused then
    fail "it ended otherwise: %s" said

(* --- reports of the checked build --------------------------------------------------------------------------------- *)

let do_leave leave () =
  let v = text 0 in
  let all = Array.init 600 (fun _ -> create v) in
  delete_elsewhere (Array.sub all leave (600 - leave));
  collect ();
  keep v

(* The arrays, which the library's own roots hold, are not reported; what is left of the program's weak roots is. *)
let reported () =
  if not (Root.is_checked ()) then skip "for the checked build";
  let said name = snd (Process.run_self ~environment:[ "BOXROOT_LEAKS=1" ] name) in
  let expect name parts =
    List.iter (fun part ->
      if not (Process.contains (said name) part) then fail "%s: expected \"%s\" in: %s" name part (said name)) parts
  in
  if said "do-leave-0" <> "" then fail "%s" (said "do-leave-0");
  expect "do-leave-300" [ "boxroot: 300 roots are live at exit\nboxroot:   300 created at "; "weak_stubs.c:" ];
  expect "do-leave-1-and-tear-down" [ "boxroot: 1 root is live at teardown\nboxroot:   1 created at " ];
  if Process.contains (said "do-leave-1-and-tear-down") "at exit" then fail "a void root is reported"

let leave_doers =
  [ ("do-leave-0", do_leave 0); ("do-leave-300", do_leave 300);
    ("do-leave-1-and-tear-down", fun () -> do_leave 1 (); Root.teardown ()) ]

(* --- misuse ------------------------------------------------------------------------------------------------------- *)

external use_after_delete : 'a -> 'a = "w_use_after_delete"
external upgrade_after_delete : 'a -> 'a = "w_upgrade_after_delete"
external delete_twice : 'a -> 'a = "w_delete_twice"
external delete_last_twice : 'a -> 'a = "w_delete_last_twice"
external delete_twice_elsewhere : 'a -> 'a = "w_delete_twice_elsewhere"
external use_without_lock : 'a -> 'a = "w_use_without_lock"
external use_null : 'a -> 'a = "w_use_null"
external delete_null : 'a -> 'a = "w_delete_null"
external delete_root : 'a -> 'a = "w_delete_root"

let history = [ "created at weak.c:101"; "deleted at weak.c:102" ]

let misuses =
  [ ("get", use_after_delete, "boxroot_weak_get: use after delete of a weak root: called at weak.c:103" :: history);
    ("upgrade", upgrade_after_delete,
     "boxroot_weak_upgrade: use after delete of a weak root: called at weak.c:104" :: history);
    ("delete-twice", delete_twice,
     "boxroot_weak_delete: double delete of a weak root: called at weak.c:105" :: history);
    ("delete-last-twice", delete_last_twice,
     "boxroot_weak_delete: double delete of a weak root: called at weak.c:105" :: history);
    ("delete-twice-elsewhere", delete_twice_elsewhere,
     "boxroot_weak_delete: double delete of a weak root: called at weak.c:105" :: history);
    ("no-lock", use_without_lock, [ "boxroot_weak_get: use without the domain lock: called at weak.c:106" ]);
    ("null", use_null, [ "boxroot_weak_get: no weak root: called with"; "weak.c:107" ]);
    ("delete-null", delete_null, [ "boxroot_weak_delete: no weak root: called with"; "weak.c:108" ]);
    ("root", delete_root, [ "boxroot_weak_delete: no weak root: called with"; "weak.c:109" ]) ]

let model_domains ~part () = if Par.multicore then model ~part ~domains:3 ~threads:2 () else skip "one domain"

let () =
  main ~slow:[ "model-domains-long" ]
    ([ ("model", model ~part:1 ~domains:1 ~threads:1); ("model-threads", model ~part:1 ~domains:1 ~threads:4);
       ("model-domains", model_domains ~part:4); ("model-domains-long", model_domains ~part:1);
       ("cycles", cycles); ("basics", basics); ("finalisers", finalisers); ("in-the-middle", in_the_middle);
       ("lazies", lazies); ("memory", memory); ("large", large); ("no-memory", no_memory); ("shared", shared);
       ("ending-domains", ending_domains); ("c++", cplusplus);
       ("destructors", destructors_of_threads);
       ("forked", forked); ("finaliser-deletes", finaliser_deletes);
       ("torn-down", torn_down); ("at-shutdown", at_shutdown);
       ("finalisers-at-shutdown", finalisers_at_shutdown); ("reported", reported) ]
     @ (if Process.is_rerun then ("do-keep-users", do_keep_users) :: leave_doers else [])
     @ Process.misuse_tests misuses)
