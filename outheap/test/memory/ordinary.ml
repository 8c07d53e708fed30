(* SPDX-License-Identifier: MIT *)
(* Programs that know nothing of memory that goes back, and must behave as with the stock runtime, without any setting:
   they have large heaps, are idle for some seconds, and go on. The time is this program's (clock.ml). One part for each
   argument. *)

let expect what condition = if not condition then failwith what
let entries = 300_000

(* 20 MB or so. *)
let build () =
  let t = Hashtbl.create 1 in
  for i = 1 to entries do Hashtbl.replace t i (string_of_int i) done;
  t

let check t = Hashtbl.iter (fun k v -> expect "an entry" (string_of_int k = v)) t
let dropped () = Hashtbl.reset (Sys.opaque_identity (build ()))

(* Much of it dies young, and little is promoted, however fast the machine is: no cycle gets far. *)
let allocate lists =
  for _ = 1 to lists do
    ignore (Sys.opaque_identity (List.fold_left ( + ) 0 (List.init 100 Fun.id)))
  done

let work seconds = Clock.work seconds (fun () -> allocate 400)
let wait_for child = snd (Unix.waitpid [] child)

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 -> (try f (); Unix._exit 0 with e -> prerr_endline (Printexc.to_string e); Unix._exit 1)
  | child -> child

let succeeds what child = expect what (wait_for child = Unix.WEXITED 0)

(* KiB of the memory of this process that it shares with none, and of all of it. *)
let memory () =
  let file = open_in "/proc/self/smaps_rollup" in
  let own = ref 0 and all = ref 0 in
  (try
     while true do
       let line = input_line file in
       let add sum = fun _ n -> sum := !sum + n in
       if String.starts_with ~prefix:"Private_" line then Scanf.sscanf line "%s %d" (add own)
       else if String.starts_with ~prefix:"Rss:" line then Scanf.sscanf line "%s %d" (add all)
     done
   with End_of_file -> close_in file);
  (!own, !all)

(* Children that do little share the heap with their parent. *)
let forked () =
  let t = build () in
  Gc.full_major ();
  let share name f =
    in_child (fun () ->
        f ();
        let own, all = memory () in
        Printf.printf "%s: %d of %d KiB are its own\n%!" name own all;
        expect "the heap is shared" (own * 3 < all))
  in
  let children =
    [ share "idle" (fun () -> allocate 20_000; Clock.idle 4.);
      share "served" (fun () -> for _ = 1 to 8 do allocate 5_000; Clock.idle 0.5 done) ]
  in
  List.iter (succeeds "a child") children;
  check t

(* A parent that only waits does not copy what its children have of it. They stay until it has looked. *)
let parent () =
  let t = build () in
  Gc.full_major ();
  let looked, look = Unix.pipe () in
  let child () =
    Unix.close look;
    ignore (Unix.read looked (Bytes.create 1) 0 1)
  in
  let children = List.init 2 (fun _ -> in_child child) in
  Clock.idle 4.;
  let own, all = memory () in
  Unix.close look;
  Printf.printf "%d of %d KiB are its own\n%!" own all;
  expect "the heap is shared" (own * 3 < all);
  List.iter (succeeds "a child") children;
  check t

(* Memory goes back, though threads have little room beside what is their own. *)
let falls () =
  let t = build () in
  let full, _ = memory () in
  Hashtbl.reset t;
  Clock.idle 4.5;
  let later, _ = memory () in
  Printf.printf "%d KiB, later %d\n%!" full later;
  expect "it goes back" (later * 2 < full)

external clone : unit -> int = "ordinary_clone"

(* Before, and while the program is collected. *)
let cloned () =
  let t = build () in
  expect "a child ends" (clone () = 0);
  Clock.flowing (fun () -> for _ = 1 to 20 do expect "a child of an idle program ends" (clone () = 0) done);
  check t

(* While no thread of the runtime's is at work. *)
let cloned_in_peace () =
  let t = build () in
  Gc.full_major ();
  Clock.settle ();
  expect "a child ends" (clone () = 0);
  check t

external shutdown : unit -> unit = "ordinary_shutdown"

(* A domain is left. *)
let left () =
  let t = build () and read, _ = Unix.pipe () in
  ignore (Domain.spawn (fun () -> Unix.read read (Bytes.create 1) 0 1));
  Clock.settle ();
  check t;
  shutdown ()

(* A collection is no signal, and takes none. Each signal is sent when the one before was handled. *)
let signals () =
  let t = build () in
  let counted = ref 0 and handled, handle = Unix.pipe () in
  let handler _ =
    incr counted;
    ignore (Unix.write_substring handle "x" 0 1)
  in
  Sys.set_signal Sys.sigusr1 (Signal_handle handler);
  let me = Unix.getpid () in
  let send () =
    for _ = 1 to 30 do
      Unix.kill me Sys.sigusr1;
      ignore (Unix.read handled (Bytes.create 1) 0 1)
    done
  in
  let interrupted = ref 0 in
  Clock.flowing (fun () ->
      let sender = in_child send in
      while !counted < 30 do
        dropped ();
        try ignore (Unix.select [] [] [] 0.02) with Unix.Unix_error (EINTR, _, _) -> incr interrupted
      done;
      succeeds "the sender" sender);
  expect (Printf.sprintf "%d signals" !counted) (!counted = 30);
  expect (Printf.sprintf "%d interrupted" !interrupted) (!interrupted <= 30);
  (* Blocked in all threads of the program: nobody takes it away. *)
  ignore (Unix.sigprocmask SIG_BLOCK [ Sys.sigusr2 ]);
  dropped ();
  Unix.kill me Sys.sigusr2;
  Clock.idle 3.;
  expect "pending" (List.mem Sys.sigusr2 (Unix.sigpending ()));
  expect "waited for" (Thread.wait_signal [ Sys.sigusr2 ] = Sys.sigusr2);
  check t

exception Alarm

(* Raised by a handler wherever the program allocates, with cycles that compact. *)
let exceptions () =
  let caught = ref 0 and armed = ref false in
  let raises _ =
    if !armed then begin
      armed := false;
      raise Alarm
    end
  in
  Sys.set_signal Sys.sigalrm (Signal_handle raises);
  let t = build () in
  ignore (Unix.setitimer ITIMER_REAL { it_interval = 0.003; it_value = 0.003 });
  while !caught < 100 do
    try
      armed := true;
      let garbage = build () in
      Hashtbl.reset garbage;
      work 0.5;
      armed := false
    with Alarm -> incr caught
  done;
  ignore (Unix.setitimer ITIMER_REAL { it_interval = 0.; it_value = 0. });
  Clock.idle 3.;
  check t

open Effect
open Effect.Deep
type _ Effect.t += Wait : int -> int Effect.t

let fibers () =
  let n = 100_000 in
  let waiting = Array.make n None in
  let sum = ref 0 in
  for i = 0 to n - 1 do
    match_with
      (fun () ->
        let text = string_of_int i in
        let got = perform (Wait i) in
        expect "a fiber's value" (text = string_of_int got);
        sum := !sum + got)
      ()
      { retc = Fun.id; exnc = raise;
        effc = (fun (type a) (e : a Effect.t) ->
          match e with
          | Wait i -> Some (fun (k : (a, unit) continuation) -> waiting.(i) <- Some (fun () -> continue k i))
          | _ -> None) }
  done;
  dropped ();
  Clock.idle 3.5;
  Array.iter (fun k -> (Option.get k) ()) waiting;
  expect "all went on" (!sum = n * (n - 1) / 2)

module Weak_set = Weak.Make (struct type t = string let equal = String.equal let hash = Hashtbl.hash end)

let weak () =
  let n = 50_000 in
  let set = Weak_set.create n and array = Weak.create n and kept = Array.init n string_of_int in
  let ephemerons = Array.init n (fun i -> Ephemeron.K1.make kept.(i) (ref i)) in
  let lost = Array.init n (fun i -> Ephemeron.K1.make (string_of_int i) (ref i)) in
  let first = ref 0 and last = ref 0 in
  for i = 0 to n - 1 do
    Weak_set.add set kept.(i);
    Weak_set.add set ("x" ^ kept.(i));
    Weak.set array i (Some (ref i));
    Gc.finalise (fun r -> if !r <> i then failwith "another value"; incr first) (ref i);
    Gc.finalise_last (fun () -> incr last) (ref i)
  done;
  dropped ();
  Clock.idle 3.5;
  for i = 0 to n - 1 do
    expect "kept" (Weak_set.mem set kept.(i));
    expect "an ephemeron" (Option.map ( ! ) (Ephemeron.K1.query ephemerons.(i) kept.(i)) = Some i)
  done;
  for _ = 1 to 3 do Gc.full_major () done;
  expect "emptied" (Weak_set.count set = n);
  expect "weak" (not (Weak.check array 7));
  expect "finalised" (!first = n && !last = n);
  ignore (Sys.opaque_identity (kept, ephemerons, lost))

external block : string -> Obj.t = "ordinary_block"
external text : Obj.t -> string = "ordinary_text"
external alive : unit -> int = "ordinary_alive"
external root : int -> Obj.t -> unit = "ordinary_root"
external rooted : int -> Obj.t = "ordinary_rooted"
external outside : int -> int ref = "ordinary_outside"
external visit : unit -> unit = "ordinary_visit"
external visited : unit -> int = "ordinary_visited"

let roots () =
  let n = 20_000 in
  let blocks = Array.init n (fun i -> block (string_of_int i)) and others = Array.init n outside in
  for i = 0 to n - 1 do
    root i (Obj.repr (string_of_int i));
    ignore (Sys.opaque_identity (block "garbage"))
  done;
  dropped ();
  for _ = 1 to 2 do
    Clock.idle 3.;
    for i = 0 to n - 1 do
      expect "a root" (Obj.obj (rooted i) = string_of_int i);
      expect "a block" (text blocks.(i) = string_of_int i);
      expect "outside" (!(others.(i)) = i)
    done;
    dropped ()
  done;
  for _ = 1 to 3 do Gc.full_major () done;
  expect (Printf.sprintf "%d are alive" (alive ())) (alive () = n);
  ignore (Sys.opaque_identity blocks)

(* Threads of C that register, call and leave, while the others wait. *)
let visits () =
  Callback.register "visit" (fun i -> ignore (Sys.opaque_identity (List.init 1000 string_of_int)); i + 1);
  let t = build () in
  let read, write = Unix.pipe () in
  let wait () = ignore (Unix.read read (Bytes.create 1) 0 1) in
  let threads = List.init 3 (fun _ -> Thread.create wait ()) in
  visit ();
  dropped ();
  expect "visits" (visited () = 40);
  Unix.close write;
  List.iter Thread.join threads;
  check t

(* What asks the collector, and changes it, beside an idle program and its compactions. *)
let questions () =
  let t = build () in
  (* OCaml 5.1 and 5.2 have no profiler. *)
  let profiled =
    match
      Gc.Memprof.start ~sampling_rate:1e-3
        { Gc.Memprof.null_tracker with alloc_major = (fun i -> Some i.size); promote = (fun i -> Some i);
          alloc_minor = (fun i -> Some i.size) }
    with
    | _ -> true
    | exception Failure _ -> false
  in
  for i = 1 to 5 do
    dropped ();
    ignore (Thread.join (Thread.create (fun () ->
      ignore (Gc.quick_stat (), Gc.counters (), Gc.allocated_bytes ());
      if i = 3 then ignore (Gc.stat ());
      Gc.set { (Gc.get ()) with space_overhead = 80 + (i * 20); minor_heap_size = 32768 * i }) ()));
    Clock.idle (if i = 2 then 3. else 0.3);
    let copy : (int, string) Hashtbl.t = Marshal.from_string (Marshal.to_string t []) 0 in
    check copy
  done;
  if profiled then Gc.Memprof.stop ();
  check t

(* Forks of all kinds: of a child's child, from a thread, with exec, and a daemon's. *)
let forks () =
  let t = build () in
  Sys.set_signal Sys.sigalrm Signal_default;
  let rec descend n () =
    check t;
    if n > 0 then (dropped (); Clock.idle 0.3; succeeds "a child's child" (in_child (descend (n - 1))))
  in
  let daemon () =
    ignore (Unix.alarm 60);
    match Unix.fork () with
    | 0 ->
      (match Unix.fork () with
      | 0 -> dropped (); Clock.idle 3.; check t; dropped (); Unix._exit 0
      | _ -> Unix._exit 0)
    | child -> succeeds "a daemon's parent" child
  in
  let exec () = Unix.execv "/bin/sh" [| "sh"; "-c"; "exit 0" |] in
  for i = 1 to 2 do
    let from_thread = ref (fun () -> ()) in
    let thread = Thread.create (fun () ->
        let child = in_child (descend 1) in
        from_thread := fun () -> succeeds "a thread's child" child) () in
    let children = List.map in_child [ descend 2; exec; daemon; (fun () -> exit 0) ] in
    Clock.idle (if i = 2 then 2.2 else 0.1);
    List.iter (succeeds "a child") children;
    Thread.join thread;
    !from_thread ();
    succeeds "a process" (Unix.create_process "/bin/true" [| "true" |] Unix.stdin Unix.stdout Unix.stderr);
    dropped ()
  done;
  check t

(* Programs that end while they are collected, between two slices or within one: at_exit is called, the status is
   theirs. *)
let exits () =
  dropped ();
  let ends i =
    in_child (fun () ->
        let t = build () in
        let r, w = Unix.pipe () in
        at_exit (fun () -> check t; ignore (Unix.write_substring w "x" 0 1); Unix.close r);
        if i < 4 then Clock.idle (2. +. (0.003 *. float i)) else (Clock.start (); Unix.sleepf (0.01 *. float i));
        exit 3)
  in
  List.iter (fun child -> expect "a status" (wait_for child = Unix.WEXITED 3)) (List.init 7 ends)

(* Domains that come and go while the others are idle. *)
let domains () =
  let t = build () in
  for i = 1 to 4 do
    let others = List.init (1 + (i mod 2)) (fun _ -> Domain.spawn (fun () -> dropped (); Clock.pass 0.7 0.)) in
    dropped ();
    if i mod 2 = 0 then List.iter Domain.join others;
    Clock.pass (if i = 3 then 2.6 else 0.4) 0.;
    if i mod 2 = 1 then List.iter Domain.join others
  done;
  check t

(* What belongs to a process is changed for all of its threads. *)
let privileges () =
  let user_of task =
    let file = open_in (Printf.sprintf "/proc/self/task/%s/status" task) in
    let rec find () =
      let line = input_line file in
      if String.starts_with ~prefix:"Uid:" line then Scanf.sscanf line "Uid: %d" Fun.id else find ()
    in
    let user = find () in
    close_in file;
    user
  in
  let give_up () =
    dropped ();
    work 0.2;
    match Unix.setgid 65534; Unix.setuid 65534 with
    | exception Unix.Unix_error (EINVAL, _, _) -> () (* a user namespace that does not have this one *)
    | () ->
      expect "the user" (Unix.getuid () = 65534);
      Array.iter (fun task -> expect "of each thread" (user_of task = 65534)) (Sys.readdir "/proc/self/task");
      dropped ();
      Clock.idle 3.;
      dropped ()
  in
  dropped ();
  if Unix.getuid () = 0 then succeeds "without privileges" (in_child give_up)

external wrap_sections : unit -> unit = "ordinary_wrap_sections"
external sections : unit -> int = "ordinary_sections"

(* A child's library wraps the hook of blocking sections, and is called in all of them, also in a child's child. *)
let wrapped () =
  let enters what =
    let before = sections () in
    for _ = 1 to 3 do ignore (Unix.stat "/") done; (* a blocking section *)
    expect what (sections () >= before + 3)
  in
  let child () =
    wrap_sections ();
    enters "a child's sections";
    dropped ();
    Clock.idle 0.3;
    succeeds "a child's child" (in_child (fun () -> enters "those of its child"));
    enters "the child's later ones"
  in
  dropped ();
  Clock.idle 0.3;
  succeeds "a child" (in_child child)

let parts =
  [ "forked", forked; "parent", parent; "falls", falls; "cloned", cloned;
    "cloned-in-peace", cloned_in_peace; "left", left; "signals", signals;
    "exceptions", exceptions; "fibers", fibers; "weak", weak; "roots", roots; "visits", visits;
    "questions", questions; "forks", forks; "wrapped", wrapped; "exits", exits;
    "domains", domains; "privileges", privileges ]

let () =
  match Sys.argv with
  | [| _; "list" |] -> List.iter (fun (name, _) -> print_endline name) parts
  | [| _; part |] -> List.assoc part parts ()
  | _ -> prerr_endline "ordinary PART"; exit 2
