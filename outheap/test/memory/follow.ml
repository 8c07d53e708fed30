(* SPDX-License-Identifier: MIT *)
(* Does resident memory follow the data, without a call?

     follow KIND PERCENT
       work      a table is dropped; ordinary work, which promotes nothing, for a few seconds
       idle      the same, and the program sleeps
       sparse    2 % of the entries survive, scattered; the program sleeps
       running   the same, with ordinary work
       finalised idle, with custom blocks that have finalisers to call, in C and in OCaml
       threads   idle, with threads that wait
       domains   idle, with two domains more, which have built and dropped a part of it
       blinking  domains that work and are idle in turn, and check what they hold; PERCENT is not looked at
       forked    idle, in a child of a fork
       orphan    idle, as a daemon: its parent has loaded and dropped the table, and is gone; it does nothing but wait
       ticking   the program wakes several times in a second, and does next to nothing then
       graph     idle, after a graph in random order, of which many blocks wait in the mark stack at a time
       later     the program is idle for long, then drops the table without a slice, and is idle again
       lent      a parent that only waits for a child, for long, and then does nothing
       stopped   the keeper is ended while it asks the backup threads of domains for slices
       split     of much data, in pools and in large blocks, every eighth stretch survives; khugepaged is at work; then
                 there is as much again
       overhead  PERCENT is what Gc.max_overhead should be
       forking   a thread of C forks all the time, beside a program that works and is idle in turn

   Fails if more than PERCENT of what was resident is resident at the end; if PERCENT is below 0, if less than -PERCENT
   is: what the stock runtime does. *)

let kind = Sys.argv.(1)
let percent = int_of_string Sys.argv.(2)
let entries = if kind = "sparse" || kind = "running" || kind = "domains" then 1_500_000 else 700_000

let resident () =
  let ic = open_in "/proc/self/statm" in
  let line = input_line ic in
  close_in ic;
  int_of_string (List.nth (String.split_on_char ' ' line) 1) * 4

let huge () =
  let ic = open_in "/proc/self/smaps_rollup" in
  let rec find () =
    match String.split_on_char ' ' (input_line ic) with
    | "AnonHugePages:" :: words -> int_of_string (List.find (fun word -> word <> "") words)
    | _ -> find ()
  in
  Fun.protect ~finally:(fun () -> close_in ic) find

(* What was measured is out of its bounds: the program may be run again (tools/testing/run.py). *)
let miss what = prerr_endline what; exit 76

let table = ref (Hashtbl.create 1)

let build () =
  let t = Hashtbl.create 1 in
  for i = 1 to entries do Hashtbl.replace t i (string_of_int i) done;
  table := t

let keep_some () =
  let kept = ref [] in
  Hashtbl.iter (fun k v -> if k mod 50 = 0 then kept := (k, v) :: !kept) !table;
  table := Hashtbl.create 1;
  !kept

let work seconds =
  let until = Unix.gettimeofday () +. seconds in
  while Unix.gettimeofday () < until do
    ignore (Sys.opaque_identity (List.fold_left ( + ) 0 (List.init 1000 Fun.id)))
  done

let finalised = ref 0

let[@inline never] make_finalised () =
  for i = 1 to 2_000 do
    let a = Bigarray.Array1.create Bigarray.int Bigarray.c_layout (10 + (i land 63)) in
    Bigarray.Array1.fill a i;
    if i land 1 = 0 then Gc.finalise (fun a -> if Bigarray.Array1.get a 0 = i then incr finalised) a
  done

let measure () =
  build ();
  if kind = "finalised" then (Gc.full_major (); make_finalised (); Gc.minor ());
  let full = resident () in
  let kept = if kind = "sparse" || kind = "running" then keep_some () else (table := Hashtbl.create 1; []) in
  let threads = if kind = "threads" then List.init 3 (fun _ -> Thread.create Thread.delay 3.) else [] in
  if kind = "work" || kind = "running" then work 12. else Unix.sleepf 4.;
  List.iter Thread.join threads;
  let later = resident () in
  Printf.printf "%s: %d KiB, later %d\n%!" kind full later;
  if kept <> [] && List.length kept <> entries / 50 then failwith "entries are lost";
  List.iter (fun (k, v) -> if v <> string_of_int k then failwith "another entry") kept;
  if kind = "finalised" then (
    Gc.full_major ();
    Gc.full_major ();
    if !finalised <> 1_000 then failwith (Printf.sprintf "%d finalisers were called" !finalised));
  if later * 100 > full * percent && percent >= 0 then miss "it did not shrink";
  if later * 100 < full * -percent && percent < 0 then miss "it shrank"

(* Domains meet at barriers: blocked there. *)
module Barrier = struct
  type t = { lock : Mutex.t; all : Condition.t; mutable left : int }
  let make left = { lock = Mutex.create (); all = Condition.create (); left }
  let reach b =
    Mutex.lock b.lock;
    b.left <- b.left - 1;
    if b.left = 0 then Condition.broadcast b.all else while b.left > 0 do Condition.wait b.all b.lock done;
    Mutex.unlock b.lock
end

let domains () =
  let built = Barrier.make 3 and over = Barrier.make 3 in
  let part () =
    let t = Hashtbl.create 1 in
    for i = 1 to entries / 3 do Hashtbl.replace t i (string_of_int i) done;
    Barrier.reach built;
    ignore (Sys.opaque_identity t)
  in
  let work () = part (); Barrier.reach over in
  let others = List.init 2 (fun _ -> Domain.spawn work) in
  part ();
  let full = resident () in
  Unix.sleepf 5.;
  let later = resident () in
  Barrier.reach over;
  List.iter Domain.join others;
  Printf.printf "domains: %d KiB, later %d\n%!" full later;
  if later * 100 > full * percent then miss "it did not shrink"

let blinking () =
  let n = 300_000 in
  let work meet seed () =
    let st = Random.State.make [| seed |] in
    let held = Array.init n (fun i -> ref (string_of_int i)) in
    List.iter
      (fun barrier ->
        for _ = 1 to 30_000 do
          let i = Random.State.int st n in
          held.(i) <- ref (string_of_int i)
        done;
        let weak = Weak.create 100 in
        for i = 0 to 99 do Weak.set weak i (Some (ref i)) done;
        Gc.finalise (fun r -> if !r = "" then failwith "finalised twice" else r := "") (ref "x");
        Barrier.reach barrier;
        Unix.sleepf (0.04 +. (0.01 *. float (Random.State.int st 15)));
        for i = 0 to 99 do if i land 7 = 0 then ignore (Weak.get weak i) done)
      meet;
    Array.iteri (fun i r -> if !r <> string_of_int i then failwith "another value") held
  in
  for _ = 1 to 3 do
    let meet = List.init 12 (fun _ -> Barrier.make 3) in
    let others = List.init 2 (fun i -> Domain.spawn (work meet i)) in
    work meet 2 ();
    List.iter Domain.join others;
    Unix.sleepf 0.1
  done

type node = { mutable one : node; mutable two : node; mutable three : node }

let[@inline never] make_graph n =
  let st = Random.State.make [| 1 |] in
  let node () = let rec x = { one = x; two = x; three = x } in x in
  let all = Array.init n (fun _ -> node ()) in
  let any () = all.(Random.State.int st n) in
  Array.iter (fun x -> x.one <- any (); x.two <- any (); x.three <- any ()) all;
  all.(0)

(* What the marker has used for it goes back, too. *)
let graph () =
  let root = ref (Some (make_graph 2_000_000)) in
  for _ = 1 to 3 do Gc.full_major () done;
  let full = resident () in
  ignore (Sys.opaque_identity !root);
  root := None;
  Unix.sleepf 6.;
  let later = resident () in
  Printf.printf "graph: %d KiB, later %d\n%!" full later;
  if later * 100 > full * percent then miss "it did not shrink"

(* The keeper sleeps by then, and nothing of this wakes it. *)
let later () =
  build ();
  build ();
  Unix.sleepf 25.;
  let full = resident () in
  table := Sys.opaque_identity (Hashtbl.create 1);
  Unix.sleepf 15.;
  let later = resident () in
  Printf.printf "later: %d KiB, later %d\n%!" full later;
  if later * 100 > full * percent then miss "it did not shrink"

let lent () =
  build ();
  Gc.full_major ();
  let child = match Unix.fork () with 0 -> Unix.sleepf 28.; Unix._exit 0 | child -> child in
  table := Sys.opaque_identity (Hashtbl.create 1);
  let full = resident () in
  if snd (Unix.waitpid [] child) <> WEXITED 0 then failwith "the child";
  let waited = resident () in
  Unix.sleepf 15.;
  let later = resident () in
  Printf.printf "lent: %d KiB, %d when the child ended, later %d\n%!" full waited later;
  if later * 100 > full * percent then miss "it did not shrink"

(* A daemon that only waits has no slice. Whoever looks is not idle, and a busy machine takes longer. *)
let orphan () =
  build ();
  let full = resident () in
  table := Sys.opaque_identity (Hashtbl.create 1);
  let found, find = Unix.pipe () in
  (match Unix.fork () with
  | 0 -> (
    match Unix.fork () with
    | 0 ->
      let rec look seconds =
        Unix.sleepf seconds;
        let later = resident () in
        if later * 100 <= full * percent || seconds >= 20. then later else look (seconds *. 2.)
      in
      let said = Printf.sprintf "%d" (look 5.) in
      ignore (Unix.write_substring find said 0 (String.length said));
      Unix._exit 0
    | _ -> Unix._exit 0)
  | child -> ignore (Unix.waitpid [] child));
  Unix.close find;
  let text = Bytes.create 20 in
  let later = int_of_string (Bytes.sub_string text 0 (Unix.read found text 0 20)) in
  Printf.printf "orphan: %d KiB, later %d\n%!" full later;
  if later * 100 > full * percent then miss "it did not shrink"

(* It is never idle for long, and its running time takes days to be that of a cycle. *)
let ticking () =
  build ();
  let full = resident () in
  table := Sys.opaque_identity (Hashtbl.create 1);
  let rec tick seconds =
    Unix.sleepf 0.2;
    ignore (Sys.opaque_identity (List.init 100 Fun.id));
    let later = if int_of_float (seconds *. 5.) mod 10 = 0 then resident () else full in
    if later * 100 <= full * percent || seconds > 60. then later else tick (seconds +. 0.2)
  in
  let later = tick 0. in
  Printf.printf "ticking: %d KiB, later %d\n%!" full later;
  if later * 100 > full * percent then miss "it did not shrink"

external stop_while_it_asks : unit -> bool = "follow_stop_while_it_asks"

let stopped () =
  build ();
  let over = Barrier.make 2 in
  let other = Domain.spawn (fun () -> build (); Barrier.reach over) in
  table := Hashtbl.create 1;
  let asks = stop_while_it_asks () in
  Barrier.reach over;
  Domain.join other;
  if asks then failwith "it asks for ever"

external collapse : unit -> int = "follow_collapse"

(* What is left is in huge pages that are used in part. The kernel may not bring the rest back in, as it does where huge
   pages are advised; it may make such pages whole when they are full again. *)
let split () =
  let all = Array.make 500 None in
  let stretch i = (Array.init 8_000 (fun k -> Array.make 3 (i + k)), Bytes.make 200_000 (Char.chr (i land 255))) in
  let fill () = Array.iteri (fun i s -> if s = None then (Gc.minor (); all.(i) <- Some (stretch i))) all in
  fill ();
  let full = resident () in
  Array.iteri (fun i _ -> if i land 7 <> 0 then all.(i) <- None) all;
  Unix.sleepf 6.;
  let later = resident () in
  let tried = collapse () in
  let collapsed = resident () in
  Printf.printf "split: %d KiB, later %d, then %d in %d mappings\n%!" full later collapsed tried;
  if later * 100 > full * percent then miss "it did not shrink";
  if (collapsed - later) * 10 > full then failwith "huge pages have brought it back in";
  fill ();
  Gc.full_major ();
  ignore (collapse ());
  let huge = huge () and resident = resident () in
  Printf.printf "full again: %d KiB of %d in huge pages\n%!" huge resident;
  if tried > 0 && huge * 10 < resident * 7 then failwith "no huge pages again";
  Array.iteri
    (fun i s ->
      match s with
      | Some (numbers, bytes) when Bytes.get bytes 199_999 = Char.chr (i land 255) ->
          Array.iteri (fun k a -> if a <> Array.make 3 (i + k) then failwith "another array") numbers
      | _ -> failwith "another string")
    all;
  if tried < 0 then (print_endline "skipped: the kernel does not collapse when asked"; exit 77)

let overhead () =
  let found = (Gc.get ()).max_overhead in
  if found <> percent then failwith (Printf.sprintf "max_overhead is %d" found)

external fork_beside : int -> unit = "follow_fork_beside"
external forks_left : unit -> int = "follow_forks_left"

(* The keeper collects in each pause. Forks come from a thread that never has the domain's lock. *)
let forking () =
  let n = 1_500_000 in
  let held = Array.init n (fun i -> ref i) in
  fork_beside 400;
  while forks_left () > 0 do
    for i = 0 to 20_000 do held.(i * 71 mod n) <- ref (i * 71 mod n) done;
    Unix.sleepf 0.03
  done;
  Array.iteri (fun i r -> if !r <> i then failwith "another value") held

let () =
  if kind = "forking" then forking ()
  else if kind = "domains" then domains ()
  else if kind = "blinking" then blinking ()
  else if kind = "graph" then graph ()
  else if kind = "later" then later ()
  else if kind = "lent" then lent ()
  else if kind = "orphan" then orphan ()
  else if kind = "ticking" then ticking ()
  else if kind = "split" then split ()
  else if kind = "stopped" then stopped ()
  else if kind = "overhead" then overhead ()
  else if kind <> "forked" then measure ()
  else (
    build ();
    table := Hashtbl.create 1;
    Gc.full_major ();
    match Unix.fork () with
    | 0 ->
      (* Up to OCaml 5.3 no cycle comes by allocation for long after a full collection (docs/internals/upstream.md), and
         until two have come what a fork shares is left alone. *)
      if (Sys.ocaml_release.major, Sys.ocaml_release.minor) < (5, 4) then Gc.full_major ();
      measure ()
    | child -> (
      match snd (Unix.waitpid [] child) with
      | WEXITED 0 -> ()
      | WEXITED 76 -> miss "in the child"
      | _ -> failwith "the child"))
