(* SPDX-License-Identifier: MIT *)
(* What is promised of the helper (outheap.h, docs/internals/helper.md), while its thread stands still, ends, or cannot
   be had.

     held PART [SEED]     stands, forks, early, twice, everywhere, spans, none, refused *)

external arm : when_:int -> int -> unit = "held_arm" [@@noalloc]
external release : unit -> unit = "held_release" [@@noalloc]
external release_when_waiting : unit -> unit = "held_release_when_waiting" [@@noalloc]
external holding : unit -> bool = "held_holding" [@@noalloc]
external armed : unit -> bool = "held_armed" [@@noalloc]
external count : unit -> int = "held_count" [@@noalloc]
external fail_to_start : unit -> unit = "held_fail" [@@noalloc]
external phase : unit -> int = "held_phase" [@@noalloc]
external swept : unit -> bool = "held_swept" [@@noalloc]
external marked : unit -> bool = "held_marked" [@@noalloc]
external stop_elsewhere : unit -> unit = "held_stop_elsewhere"
external sleeps_elsewhere : unit -> bool = "held_sleeps_elsewhere" [@@noalloc]
external join_elsewhere : unit -> unit = "held_join"
external unshare : unit -> int = "held_unshare"

let fail format = Printf.ksprintf failwith format

let lock = 1 and work = 2 and nested = 3 (* held_stubs.c *)

(* --- a heap that says whether it is whole ------------------------------------------------------------------------- *)

type cell = { id : int; text : string; mutable next : cell option }

module E = Ephemeron.K1

let cell id = { id; text = string_of_int id; next = None }
let check what c = if c.text <> string_of_int c.id then fail "%s: cell %d says %S" what c.id c.text

type heap = { cells : cell array; keys : int ref array; ephemerons : (int ref, cell) E.t array }

let finalised = Atomic.make 0

let heap n =
  let keys = Array.init (n / 20) ref in
  { cells = Array.init n cell; keys; ephemerons = Array.mapi (fun i k -> E.make k (cell i)) keys }

(* Cells change places, some are replaced, and so are keys, with what hangs on them. *)
let step r h steps =
  let n = Array.length h.cells in
  for _ = 1 to steps do
    let i = Random.State.int r n and j = Random.State.int r n in
    let c = h.cells.(i) in
    h.cells.(i) <- h.cells.(j);
    h.cells.(j) <- (if Random.State.int r 4 = 0 then cell c.id else c);
    c.next <- Some (cell i);
    check "step" h.cells.(i);
    if Random.State.int r 50 = 0 then begin
      let k = Random.State.int r (Array.length h.keys) in
      let key = ref k in
      h.keys.(k) <- key;
      h.ephemerons.(k) <- E.make key (cell k);
      Gc.finalise (fun c -> check "finaliser" c; Atomic.incr finalised) (cell k)
    end
  done

let all what h =
  let sum = Array.fold_left (fun sum c -> check what c; Option.iter (check what) c.next; sum + c.id) 0 h.cells in
  let n = Array.length h.cells in
  if sum <> n * (n - 1) / 2 then fail "%s: a cell is missing" what;
  Array.iteri (fun i e ->
    match E.query e h.keys.(i) with
    | Some c -> check what c; if c.id <> i then fail "%s: data of %d are %d" what i c.id
    | None -> fail "%s: the key %d lives, and its data do not" what i) h.ephemerons

let helper_lives () =
  Array.exists (fun task ->
    match In_channel.with_open_bin ("/proc/self/task/" ^ task ^ "/comm") In_channel.input_all with
    | name -> String.trim name = "outheap-helper"
    | exception Sys_error _ -> false) (Sys.readdir "/proc/self/task")

let until what f =
  let late = Unix.gettimeofday () +. 240. in
  while not (f ()) do if Unix.gettimeofday () > late then fail "%s: not in four minutes" what done

let has_marked () = Array.exists (fun (s : Outheap.helper_span) -> s.marks) (Outheap.helper_spans ())

let random n = Random.State.make [| (if Array.length Sys.argv > 2 then int_of_string Sys.argv.(2) else 1); n |]

(* --- parts -------------------------------------------------------------------------------------------------------- *)

(* The helper stands still with a lock, or with pools or entries in hand, and the program goes on: through some cycles,
   which it ends by itself. If it waited for the helper, that would be for ever. *)
let stands () =
  let r = random 1 and h = heap 15_000 in
  for round = 1 to 24 do
    let when_ = [| lock; work; nested |].(round mod 3) in
    arm ~when_ (Random.State.int r (if when_ = nested then 3 else 60));
    until "stands" (fun () -> step r h 200; holding ());
    let cycles = (Gc.quick_stat ()).major_collections in
    for _ = 1 to 100 do step r h 200 done;
    Printf.printf "%d: %d cycles\n%!" when_ ((Gc.quick_stat ()).major_collections - cycles);
    if not (holding ()) then fail "stands: it was released";
    release ();
    until "stands" (fun () -> step r h 200; not (armed ()));
    all "stands" h
  done;
  if count () <> 24 then fail "stands: held %d times" (count ());
  Gc.full_major ();
  all "stands, at last" h

(* Forks between the steps of some cycles, in every phase of the collector; and while the helper is held: that fork
   waits. The child collects everything there. What finalisers still need is marked in a phase of its own, which is to
   take some slices. *)
let forks () =
  let r = random 2 and h = heap 20_000 in
  let forked = Hashtbl.create 10 in
  let missing = ref [ 1; 2; 3 ] (* phases *) in
  let times here = Option.value ~default:0 (Hashtbl.find_opt forked here) in
  let fork here =
    match Unix.fork () with
    | 0 ->
      (match
         if Random.State.bool r then step r h 500;
         Gc.full_major ();
         step r h 5_000;
         if Random.State.int r 4 = 0 then Gc.compact ();
         all "child" h
       with
       | () -> Unix._exit 0
       | exception e -> prerr_endline (Printexc.to_string e); Unix._exit 3)
    | child ->
      Hashtbl.replace forked here (1 + times here);
      missing := (let p, _, _ = here in List.filter (( <> ) p) !missing);
      (match Unix.waitpid [] child with _, WEXITED 0 -> () | _ -> fail "forks: a child")
  in
  Gc.full_major ();
  let cycles () = (Gc.quick_stat ()).major_collections in
  let before = cycles () in
  while cycles () < before + if !missing = [] then 8 else 80 do
    step r h 100;
    if Random.State.int r 20 = 0 then Gc.finalise (List.iter (check "finalised list")) (List.init 3_000 cell);
    ignore (Gc.major_slice (1 + Random.State.int r 10_000));
    let here = (phase (), swept (), marked ()) in
    if times here < 10 then fork here
  done;
  all "forks" h;
  if !missing <> [] then fail "forks: there was none in phase %d" (List.hd !missing);
  Hashtbl.iter (fun (p, s, m) n -> Printf.printf "phase %d, swept %b, marked %b: %d forks\n" p s m n) forked;
  for _ = 1 to 6 do
    arm ~when_:work (Random.State.int r 40);
    until "forks" (fun () -> step r h 100; holding ());
    release_when_waiting ();
    fork (phase (), swept (), marked ());
    until "forks" (fun () -> not (armed ()))
  done;
  all "forks, at last" h

(* Ended before there has been one: there never is one, in children neither. *)
let early () =
  Outheap.stop_helper ();
  let r = random 3 and h = heap 60_000 in
  let go_on what =
    for _ = 1 to 10 do step r h 10_000 done;
    Gc.full_major ();
    if helper_lives () then fail "%s: there is a helper" what;
    if Outheap.helper_spans () <> [||] then fail "%s: a helper did something" what;
    all what h
  in
  go_on "early";
  match Unix.fork () with
  | 0 ->
    (match go_on "child" with
     | () -> Unix._exit 0
     | exception e -> prerr_endline (Printexc.to_string e); Unix._exit 3)
  | child -> (match Unix.waitpid [] child with _, WEXITED 0 -> () | _ -> fail "early: a child")

(* Several threads end it at once, one without the runtime lock: for each of them it has ended when it returns. *)
let twice () =
  let r = random 4 and h = heap 60_000 in
  until "twice" (fun () -> step r h 100; has_marked ());
  arm ~when_:work (Random.State.int r 20);
  until "twice" (fun () -> step r h 100; holding ());
  stop_elsewhere ();
  until "twice" sleeps_elsewhere; (* it waits for the helper, which does nothing *)
  release_when_waiting ();
  let other = Domain.spawn (fun () -> Outheap.stop_helper (); helper_lives ()) in
  Outheap.stop_helper ();
  if helper_lives () then fail "twice: it lives";
  if Domain.join other then fail "twice: it lives for another domain";
  join_elsewhere ();
  Outheap.stop_helper ();
  for _ = 1 to 10 do step r h 10_000; all "twice" h done;
  Gc.full_major ();
  if helper_lives () then fail "twice: it lives again"

(* From a finaliser, which runs in the middle of the collector's work; then what wants a process with one thread is
   possible, if it is at all without this setting. *)
let everywhere () =
  let r = random 5 and h = heap 60_000 in
  let ended = ref false in
  until "everywhere" (fun () -> step r h 1_000; has_marked ());
  Gc.finalise (fun _ -> Outheap.stop_helper (); ended := true) (ref 0);
  until "everywhere" (fun () -> step r h 1_000; !ended);
  if helper_lives () then fail "everywhere: it lives";
  let tasks = Array.length (Sys.readdir "/proc/self/task") in
  let error = unshare () in
  Printf.printf "%d threads, unshare: %d\n" tasks error;
  (* EINVAL; without that file the system has no such spaces, and says the same *)
  if tasks = 1 && error = 22 && Sys.file_exists "/proc/self/ns/user" then
    fail "everywhere: this process has several threads";
  for _ = 1 to 5 do step r h 10_000; all "everywhere" h done

(* Each stretch is given out once, whoever asks. *)
let spans () =
  let r = random 6 and h = heap 60_000 in
  let over = Atomic.make false in
  let take () =
    let rec go all =
      let all = match Outheap.helper_spans () with [||] -> all | some -> some :: all in
      if Atomic.get over then all else go all
    in
    Array.concat (go [])
  in
  let others = List.init 2 (fun _ -> Domain.spawn take) in
  let thread = ref [||] in
  let asking = Thread.create (fun () -> thread := take ()) () in
  for i = 1 to 60 do step r h 3_000; if i mod 10 = 0 then Gc.full_major () done;
  Atomic.set over true;
  Thread.join asking;
  let all = Array.concat (!thread :: List.map Domain.join others) in
  let all = Array.append all (Outheap.helper_spans ()) in
  Array.sort compare all;
  Printf.printf "%d stretches\n" (Array.length all);
  if Array.length all < 20 then fail "spans: %d" (Array.length all);
  Array.iteri (fun i (s : Outheap.helper_span) ->
    if s.number <> i then fail "spans: number %d in place of %d" s.number i;
    if s.work <= 0 || s.ended < s.began then fail "spans: %d: %d words from %d to %d" i s.work s.began s.ended;
    if i > 0 && s.began < all.(i - 1).ended then fail "spans: %d began before its predecessor ended" i) all

(* No thread can be had: the program runs without. *)
let none () =
  fail_to_start ();
  let r = random 7 and h = heap 60_000 in
  for _ = 1 to 10 do step r h 10_000 done;
  Gc.full_major ();
  all "none" h;
  if helper_lives () then fail "none: there is a helper"

(* A setting that is refused leaves the others as they are. *)
let refused () =
  let r = random 8 and h = heap 60_000 in
  for _ = 1 to 5 do step r h 10_000 done;
  Gc.full_major ();
  all "refused" h;
  if helper_lives () then fail "refused: there is a helper"

let () =
  (match Sys.argv.(1) with
   | "stands" -> stands ()
   | "forks" -> forks ()
   | "early" -> early ()
   | "twice" -> twice ()
   | "everywhere" -> everywhere ()
   | "spans" -> spans ()
   | "none" -> none ()
   | "refused" -> refused ()
   | part -> fail "no part %s" part);
  Printf.printf "good %s\n" Sys.argv.(1)
