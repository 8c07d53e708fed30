(* SPDX-License-Identifier: MIT *)
(* Local frames: their locals keep and follow their values, whatever ends the frames: return, close, exceptions of OCaml
   and C++, also through several of them; also when functions below add to them. What they take from malloc is used
   again. *)

open Root

type frame = int
type local = int

external frame : int -> int -> (frame -> 'a) -> 'a = "f_frame"
external frame_in_loop : int -> (frame -> 'a) -> 'a = "f_frame_in_loop"
external cxx_frame : (frame -> 'a) -> 'a = "f_cxx_frame"
external add : frame -> 'a -> local = "f_add"
external add_from_below : frame -> 'a -> local = "f_add_from_below"
external get : local -> 'a = "f_get"
external set : local -> 'a -> unit = "f_set"
external write : local -> 'a -> unit = "f_write"
external close : frame -> unit = "f_close"
external error : unit -> string = "f_error"
external add_to_closed : 'a -> bool = "f_add_to_closed"
external many : int -> int -> int = "f_many"
external until_full : unit -> int = "f_until_full"
external deep : int -> int -> (unit -> unit) -> int = "f_deep"
external foreign : (unit -> unit) -> int -> unit = "f_foreign"
external blocking : int -> unit = "f_blocking"
external fork : (unit -> unit) -> unit = "f_fork"
external two_frames : bool -> unit = "f_two_frames"
external sum : int -> float = "f_sum"
external arm : int -> int -> unit = "o_arm"
external disarm : unit -> unit = "o_disarm"
external failures : unit -> int = "o_failures"

let () = Callback.register "compact" Root.compact

(* --- the model: frames at random, by one player ------------------------------------------------------------------- *)

(* What the player knows of an open frame: what each local must hold. *)
type known = { frame : frame; mutable locals : (local * int) list; mutable closed : bool }

exception Unwind of int

let player seed steps =
  let rng = Random.State.make [| seed |] in
  let rnd n = Random.State.int rng n in
  let left = ref steps in
  let check k =
    List.iter (fun (l, i) ->
      let v : Obj.t = get l in
      if not (Obj.is_block v && Obj.tag v = Obj.string_tag && String.equal (Obj.obj v) (text i)) then
        fail "seed %d, %d steps left: a local does not hold %d" seed !left i) k.locals
  in
  let pick open_ = List.nth open_ (if rnd 3 = 0 then rnd (List.length open_) else 0) in
  let add_some k =
    if not k.closed then
      for _ = 1 to 1 + (if rnd 20 = 0 then rnd 700 else rnd 6) do
        let i = rnd 1_000_000 in
        let l = (if rnd 4 = 0 then add_from_below else add) k.frame (text i) in
        if l = 0 then fail "no local";
        k.locals <- (l, i) :: k.locals
      done
  in
  let change k =
    match k.locals with
    | [] -> ()
    | (l, _) :: rest ->
        let i = rnd 1000 in
        (if rnd 2 = 0 then set else write) l (text i);
        k.locals <- (l, i) :: rest
  in
  let rec run open_ depth =
    let go = ref true in
    while !go && !left > 0 do
      decr left;
      match rnd 22 with
      | 0 -> go := false
      | 1 | 2 | 3 -> if depth < 40 then enter open_ depth
      | 4 -> if depth > 0 then raise (Unwind (rnd (depth + 1)))
      | 5 | 6 | 7 | 8 -> add_some (pick open_)
      | 9 | 10 -> change (pick open_)
      | 11 | 12 -> check (pick open_)
      | 13 -> List.iter check open_
      | 14 | 15 -> Gc.minor ()
      | 16 -> ignore (Gc.major_slice 100)
      | 17 -> if rnd 30 = 0 then Gc.full_major ()
      | 18 -> if rnd 60 = 0 then Root.compact ()
      | 19 -> Thread.yield ()
      | _ -> for i = 1 to rnd 500 do ignore (Sys.opaque_identity (text i)) done
    done
  and enter open_ depth =
    let body how f =
      let k = { frame = f; locals = []; closed = false } in
      add_some k;
      run (k :: open_) (depth + 1);
      check k;
      if how = 2 && rnd 2 = 0 then begin
        close f;
        k.closed <- true
      end;
      text depth
    in
    let open_one () =
      match rnd 6 with
      | 0 -> cxx_frame (body 0)
      | 1 -> frame_in_loop 0 (body 0)
      | _ -> let how = rnd 3 in frame [| 1; 3; 8; 100 |].(rnd 4) how (body how)
    in
    (match open_one () with
     | s -> if s <> text depth then fail "a frame returned %s" s
     | exception Unwind to_depth when to_depth = depth -> ());
    List.iter (fun k -> if rnd 4 = 0 then check k) open_
  in
  while !left > 0 do
    match enter [] 0 with () -> () | exception Unwind _ -> ()
  done

let steps = scale 60_000
(* One in `part` of the steps. Domains wait for one another, and take long. *)
let model ~part ~domains ~threads () =
  let each = steps / part / threads / if domains > 1 then 60 else 1 in
  Players.all ~domains ~threads (fun n -> player (Players.seed + n) each)

(* --- counts and memory -------------------------------------------------------------------------------------------- *)

let large () =
  List.iter (fun (n, each) ->
    match many n each with 0 -> () | wrong -> fail "%d locals: %d wrong" n wrong)
    [ (1, 1); (4, 1); (5, 1); (500, 7); (20_000, 1000); (scale 1_200_000, 300_000) ]

let full () =
  let n = until_full () in
  Printf.printf "%d locals in a frame\n" n;
  if n < 10_000_000 || error () <> "no memory for more roots" then fail "%d: %s" n (error ())

(* What exceptions leave behind is used again: the memory does not grow with their number. *)
let bounded what step =
  let resident_kb () = ignore (sum 1); resident_kb () in (* f_sum tells AddressSanitizer what exceptions have ended *)
  peaks ~resident_kb ~every:10 ~first:(50 + scale 1000) ~others:(scale 2000) ~kb:8_000 what step

let raising depth locals =
  match deep depth locals (fun () -> raise Exit) with _ -> fail "no exception" | exception Exit -> ()

let abandoned () =
  bounded "a frame" (fun _ -> raising 0 3000);
  bounded "several frames" (fun _ -> raising 10 100);
  bounded "at many depths" (fun i -> raising (i mod 50) 100);
  bounded "within a frame that grows" (fun _ ->
    frame 1 0 (fun f ->
      for i = 1 to 20 do
        raising (i mod 5) 200;
        let l = add f (text i) in
        raising 3 200;
        if get l <> text i then fail "local %d" i
      done));
  bounded "added from below" (fun _ ->
    match frame 3 0 (fun f -> for i = 1 to 500 do ignore (add_from_below f (text i)) done; raise Exit) with
    | () -> fail "no exception"
    | exception Exit -> ());
  if deep 100 70 (fun () -> raising 20 70) <> 100 * 101 / 2 then fail "wrong sum"

let ending_threads () =
  bounded "threads" (fun i ->
    let body () = raising 3 3000; frame 1 0 (fun f -> ignore (add f 1)) in
    if i mod 10 = 0 then Thread.join (Thread.create body ()));
  bounded "threads of C" (fun i -> if i mod 10 = 0 then foreign (fun () -> raising 2 3000; raise Exit) 1);
  if Par.multicore then
    bounded "domains" (fun i -> if i mod 50 = 0 then Par.join (Par.spawn (fun () -> raising 3 3000)))

(* The n-th request for memory fails, or all from the n-th on. *)
let no_memory () =
  List.iter (fun mode ->
    let n = ref 1 and going = ref true in
    while !going do
      Process.in_child (fun () ->
        let added = ref [] and failed = ref 0 in
        frame 3 0 (fun f ->
          arm mode !n;
          for i = 1 to 800 do
            match add f (text i) with
            | 0 ->
                incr failed;
                if error () <> "no memory for more roots" then fail "said: %s" (error ());
                if !failed > 3 then disarm ()
            | l -> added := (l, i) :: !added
          done;
          disarm ();
          Gc.full_major ();
          if add f 1 = 0 then fail "no local afterwards";
          List.iter (fun (l, i) -> if get l <> text i then fail "local %d" i) !added);
        if !failed = 0 then exit_now (if failures () = 0 then 0 else 1));
      incr n;
      going := !n < 30
    done) [ 1; 2 ]

(* --- others meanwhile --------------------------------------------------------------------------------------------- *)

let blocking_sections () =
  let stop = ref false in
  let others = List.init 3 (fun _ ->
    Thread.create (fun () -> while not !stop do
      Gc.minor (); ignore (sum 300);
      if Random.int 50 = 0 then Gc.full_major ();
      Thread.yield () done) ()) in
  for _ = 1 to scale 300 do blocking 300 done;
  stop := true;
  List.iter Thread.join others

let forked () =
  for _ = 1 to scale 20 do fork (fun () -> Gc.full_major (); raising 3 500; Gc.minor ()) done

(* Finalisers and signal handlers open frames, and raise through those of the program. A round ends with its signal. *)
let interrupted () =
  let finalised = ref 0 and inside = ref false and raised = ref 0 in
  let watch () = Gc.finalise (fun _ -> incr finalised; if sum 200 <> 20100. then fail "wrong sum") (ref 0) in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> ignore (sum 100); raise Exit));
  let n = scale 200 in
  while !raised < n || !finalised = 0 do
    frame 3 0 (fun f ->
      let locals = List.init 100 (fun i -> add f (text i)) in
      inside := false;
      (try
         let it_value = 0.0001 *. float (1 + (!raised mod 10)) in
         ignore (Unix.setitimer Unix.ITIMER_REAL { it_interval = 0.; it_value });
         ignore (deep 20 70 (fun () ->
           inside := true;
           while true do watch (); ignore (Sys.opaque_identity (text 0)) done))
       with Exit -> if !inside then incr raised);
      List.iteri (fun i l -> if get l <> text i then fail "local %d" i) locals)
  done;
  Printf.printf "%d finalisers\n" !finalised

let closed () =
  if is_checked () then skip "the checked build ends the program";
  if not (add_to_closed 1) || error () <> "boxroot_local_create was called with a frame that is closed" then
    fail "said: %s" (error ())

(* What the frames keep alive goes with them. *)
let nothing_kept () =
  let w = Weak.create 300 in
  let put f i = let v = text i in Weak.set w i (Some v); ignore (add f v) in
  let check what =
    Gc.full_major ();
    for i = 0 to 299 do if Weak.check w i then fail "%s: value %d is still there" what i done
  in
  let fill f = for i = 0 to 299 do put f i done in
  List.iter (fun how -> frame 3 how fill; check "returned") [ 0; 1; 2 ];
  List.iter (fun how -> (try frame 3 how (fun f -> fill f; raise Exit) with Exit -> ()); check "raised") [ 0; 1; 2 ];
  (try cxx_frame (fun f -> fill f; raise Exit) with Exit -> ());
  check "thrown"

let one_function () = for _ = 1 to 100 do List.iter two_frames [ true; false ] done

(* Effects in a callback that a frame waits for: handled within it, or by nobody, as C code is in between. *)
let effects () =
  for i = 1 to scale 300 do
    let r = frame 3 (i mod 3) (fun f ->
      let before = List.init 100 (fun j -> add f (text j)) in
      let r = Par.switching (fun switch ->
        let outer = switch () in
        let inner = frame 1 0 (fun g ->
          let l = add g (text i) in
          Gc.minor ();
          (match switch () with _ -> if Par.multicore then fail "C code was left" | exception _ -> ());
          raising 2 100;
          get l) in
        if i mod 10 = 0 then Gc.full_major ();
        inner ^ outer)
      in
      List.iteri (fun j l -> if get l <> text j then fail "local %d" j) before;
      r) in
    if r <> text i ^ "again" then fail "%s" r
  done

let at_shutdown () = at_exit (fun () -> if sum 200 <> 20100. then fail "wrong sum"; raising 3 200)

(* --- misuse ------------------------------------------------------------------------------------------------------- *)

external use_after_close : 'a -> 'a = "f_use_after_close"
external use_after_return : 'a -> 'a = "f_use_after_return"
external use_after_reuse : 'a -> 'a = "f_use_after_reuse"
external leave_and_raise : 'a -> 'a = "f_leave_and_raise"
external use_stale : unit -> 'a = "f_use_stale"
external create_in_closed : 'a -> 'a = "f_create_in_closed"
external close_out_of_order : 'a -> 'a = "f_close_out_of_order"
external close_after_forgotten : 'a -> 'a = "f_close_after_forgotten"
external use_on_thread : 'a -> 'a = "f_use_on_thread"
external lend : (unit -> unit) -> unit = "f_lend"
external use_lent : 'a -> 'a = "f_use_lent"

let misuses =
  [ ("after-close", use_after_close,
     [ "boxroot_local_get: use after close: called at frames.c:104"; "opened at frames.c:101";
       "closed at frames.c:103" ]);
    ("after-return", use_after_return,
     [ "boxroot_local_set: use after close: called at frames.c:106"; "opened at frames.c:105" ]);
    ("after-reuse", use_after_reuse, [ "boxroot_local_ref: use after close: called at frames.c:107" ]);
    ("after-exception", (fun v -> (try ignore (leave_and_raise v) with Failure _ -> ()); use_stale ()),
     [ "use after close: called at frames.c:109"; "opened at frames.c:108"; "ended by an exception" ]);
    ("after-exception-and-reuse",
     (fun v ->
       (try ignore (leave_and_raise v) with Failure _ -> ());
       for _ = 1 to 5 do raising 3 1 done;
       use_stale ()),
     [ "use after close: called at frames.c:109"; "opened at frames.c:108"; "ended by an exception" ]);
    ("create", create_in_closed, [ "boxroot_local_create: use after close: called at frames.c:111"; "frames.c:110" ]);
    ("order", close_out_of_order, [ "closed out of order: called at frames.c:112"; "opened at frames.c:113" ]);
    ("forgotten", close_after_forgotten, [ "closed out of order: called at frames.c:114" ]);
    ("lent", (fun v -> lend (fun () -> Thread.join (Thread.create use_lent 1)); v),
     [ "boxroot_local_create: use after close: called at frames.c:116" ]) ]
  @ (* OCaml 4.14 does not tell *)
  if Par.multicore then
    [ ("on-thread", use_on_thread, [ "use without the domain lock: called at frames.c:115" ]) ]
  else []

let () =
  main ~slow:[ "model-domains-long" ]
    ([ ("model", model ~part:1 ~domains:1 ~threads:1); ("model-threads", model ~part:1 ~domains:1 ~threads:4);
       ("model-domains", model ~part:4 ~domains:3 ~threads:2);
       ("model-domains-long", model ~part:1 ~domains:3 ~threads:2);
       ("large", large); ("full", full); ("abandoned", abandoned);
       ("ending-threads", ending_threads); ("no-memory", no_memory); ("blocking-sections", blocking_sections);
       ("forked", forked); ("interrupted", interrupted); ("closed", closed); ("nothing-kept", nothing_kept);
       ("one-function", one_function); ("effects", effects);
       ("at-shutdown", at_shutdown) ]
     @ Process.misuse_tests misuses)
