(* SPDX-License-Identifier: MIT *)
(* Memory that goes back by itself, with memory.idle=200ms: OCaml 5. From 5.3 on the reclaim thread collects an idle
   program. The time is this program's (clock.ml). *)
external counted : int -> Obj.t = "variant_counted"
external finalised : unit -> int = "variant_finalised"
external elsewhere : unit -> int = "variant_elsewhere"

let expect what condition = if not condition then failwith what
let collects_idle = Scanf.sscanf Sys.ocaml_version "%d.%d" (fun major minor -> (major, minor) >= (5, 3))
let table : (int, string) Hashtbl.t ref = ref (Hashtbl.create 1)
let entries = 500_000

let build () =
  let t = Hashtbl.create entries in
  for i = 1 to entries do Hashtbl.replace t i (string_of_int i) done;
  table := t

let drop () = table := Hashtbl.create 1

let resident () =
  let file = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line file) "%d %d" (fun _ resident -> resident) in
  close_in file;
  pages * 4096

let falls what =
  build ();
  let full = resident () in
  drop ();
  Clock.idle 15.; (* the reclaim thread may sleep for five, and then look three times, each after three, until it is
  sure *)
  if collects_idle then expect what (resident () < full / 2)

(* Twice, and with a working heap in between. *)
let idle () =
  falls "idle";
  Work.run 1;
  falls "idle again"

(* Old and young blocks, small and large. The reclaim thread leaves them to the program. *)
let finalisers () =
  let make n = List.concat (List.init n (fun i -> [ counted (1 + (i mod 100)); counted 300 ])) in
  let old = ref (make 2_000) in
  Gc.full_major ();
  ignore (Sys.opaque_identity !old);
  expect "alive" (finalised () = 0);
  old := [];
  falls "beside finalisers";
  let young = ref (make 20) in
  young := [];
  falls "beside young ones";
  ignore (Sys.opaque_identity (!old, !young));
  for _ = 1 to 3 do Gc.full_major () done;
  expect "all finalised" (finalised () = 4_040);
  expect "by the program's thread" (elsewhere () = 0)

(* Also in children, and while the reclaim thread is at work. *)
let forks () =
  build ();
  for i = 1 to 12 do
    drop ();
    if i mod 4 = 0 then build ();
    Clock.idle (0.05 *. float (i mod 5));
    match Unix.fork () with
    | 0 ->
      (try if i mod 6 = 0 then falls "in a child" else Work.run 1
       with e -> prerr_endline (Printexc.to_string e); Unix._exit 1);
      Unix._exit 0
    | child -> expect "child" (snd (Unix.waitpid [] child) = WEXITED 0)
  done

let overhead () =
  let set max_overhead = Gc.set { (Gc.get ()) with max_overhead } in
  expect "by default" ((Gc.get ()).max_overhead = 500);
  set 1_000_000;
  expect "never" ((Gc.get ()).max_overhead = 1_000_000);
  falls "without compaction";
  set 0;
  Work.run 2;
  expect "always" ((Gc.get ()).max_overhead = 0)

let tests =
  [ "following-idle", idle; "following-finalisers", finalisers; "following-forks", forks;
    "following-overhead", overhead ]
