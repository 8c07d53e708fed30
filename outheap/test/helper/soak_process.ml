(* SPDX-License-Identifier: MIT *)
(* Forks in every phase of the collector, and ends of processes. *)
open Soak_check

external exit_at_once : int -> 'a = "soak_exit"

let reap what pid =
  match Unix.waitpid [] pid with
  | _, WEXITED 0 -> ()
  | _, WEXITED n -> fail "%s: exit code %d" what n
  | _, (WSIGNALED n | WSTOPPED n) -> fail "%s: signal %d" what n

let rec child r a depth how =
  began := Unix.gettimeofday () +. 3600.; (* no more than what is asked for here *)
  let work () =
    Soak_data.shuffle r a "child" 2_000;
    litter r (Random.State.int r 30_000);
    if Random.State.int r 3 = 0 then Gc.full_major ();
    if Random.State.int r 6 = 0 then Gc.compact ();
    Soak_data.all r a "child"
  in
  match
    if how land 1 = 0 then work ();
    if depth < 2 then fork r a (depth + 1) (Random.State.int r 4);
    work ();
    if how = 3 then Domain.join (Domain.spawn work)
  with
  | () -> if how land 1 = 0 then exit 0 else exit_at_once 0
  | exception e ->
    prerr_endline ("child: " ^ Printexc.to_string e);
    exit_at_once 3

and fork r a depth how =
  flush_all ();
  match Unix.fork () with
  | 0 -> child r a depth how
  | pid -> reap (Printf.sprintf "child of depth %d, kind %d" depth how) pid

let forks () =
  let r = random 60 and a = Soak_data.cells 10_000 in
  rounds (fun round ->
    (* Somewhere in a cycle: slices of any size before. *)
    Soak_data.shuffle r a "forks" (Random.State.int r 10_000);
    if Random.State.bool r then ignore (Gc.major_slice (Random.State.int r 50_000));
    fork r a 1 (round land 3);
    Soak_data.all r a "forks")

(* Threads go on while one of them forks; the child has that one alone. *)
let forks_of_threads () =
  let stop = ref false in
  let body k =
    let r = random (400 + k) and a = Soak_data.cells 3_000 in
    while not !stop do Soak_data.shuffle r a "thread" 300; Thread.yield () done;
    Soak_data.all r a "thread"
  in
  let some = List.init 2 (fun k -> Thread.create body k) in
  let r = random 61 and a = Soak_data.cells 5_000 in
  let forked = ref 0 in
  rounds (fun _ ->
    incr forked;
    Soak_data.shuffle r a "forks-of-threads" 2_000;
    fork r a 2 1);
  stop := true;
  List.iter Thread.join some

(* This program itself, ending in several ways in the middle of a cycle. *)
let ways = [| "return"; "at_exit"; "exit"; "thread"; "domain"; "exception" |]

let ending way =
  let r = random 62 in
  let a = Soak_data.cells 20_000 in
  at_exit (fun () -> litter r 20_000; Soak_data.shuffle r a "at exit" 5_000; Soak_data.all r a "at exit");
  Gc.finalise (fun c -> check "finaliser at exit" c) (cell 1);
  Soak_data.shuffle r a "ending" (Random.State.int r 20_000);
  ignore (Gc.major_slice (Random.State.int r 50_000));
  match way with
  | "at_exit" -> at_exit Gc.full_major
  | "exit" -> exit 0
  | "thread" -> ignore (Thread.create (fun () -> while true do litter r 100 done) ())
  | "domain" -> Domain.join (Domain.spawn (fun () -> litter r 50_000))
  | "exception" -> (try List.iter (fun _ -> raise Exit) [ 1 ] with Exit -> ())
  | _ -> ()

let ends () =
  rounds (fun round ->
    let way = ways.(round mod Array.length ways) in
    let words = [| Sys.executable_name; "--ending"; way; "--seed"; string_of_int (!seed + round) |] in
    reap ("ending by " ^ way) (Unix.create_process words.(0) words Unix.stdin Unix.stdout Unix.stderr))

let tests = [ "forks", forks; "forks-of-threads", forks_of_threads; "ends", ends ]
