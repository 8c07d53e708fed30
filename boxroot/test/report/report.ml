(* SPDX-License-Identifier: MIT *)
(* Reports: roots are counted exactly, by storage; samples lead to those who made the roots that are live, each as often
   as it should; registered cells are found and named; the environment, signals and caps are obeyed. *)

open Root

external report : string -> bool = "p_report"
external sample : int -> bool = "p_sample"
external created_slowly : unit -> int = "p_created_slowly"
external here : 'a -> Root.t = "p_here"
external there : 'a -> Root.t = "p_there"
external brief : 'a -> unit = "p_brief"
external by_handle : 'a -> Root.t = "p_by_handle"
external wide : 'a -> Root.t = "p_wide"
external wide_delete : Root.t -> unit = "p_wide_delete"
external storage : string -> int = "p_storage"
external stored : int -> 'a -> Root.t = "p_stored"
external stored_by_handle : int -> 'a -> Root.t = "p_stored_by_handle"
external storage_clear : int -> bool = "p_storage_clear"
external register_variables : int -> 'a -> unit = "p_register_variables"
external remove_variables : int -> unit = "p_remove_variables"
external register_allocated : 'a -> int = "p_register_allocated"
external set_cap : int -> unit = "p_cap"
external told : unit -> int = "p_told"
external report_without_lock : unit -> unit = "p_report_without_lock"
external raise_signal : unit -> unit = "p_raise"

(* --- reading reports ---------------------------------------------------------------------------------------------- *)

let read file =
  let channel = open_in_bin file in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  Sys.remove file;
  text

let lines text = String.split_on_char '\n' text
let now () =
  let file = Printf.sprintf "report-%d.txt" (Unix.getpid ()) in
  if Sys.file_exists file then Sys.remove file;
  if not (report file) then fail "no report";
  read file

(* The sum of the numbers in lines that contain `what`. *)
let count what text =
  let number line = if Process.contains line what then Scanf.sscanf line "boxroot: %d" Fun.id else 0 in
  List.fold_left (fun sum line -> sum + number line) 0 (lines text)

let expect what text n = if count what text <> n then fail "%s: expected %d in\n%s" what n text
let expect_line what text =
  if not (List.exists (fun line -> Process.contains line what) (lines text)) then fail "no \"%s\" in\n%s" what text
let live = "live roots of Boxroot"

(* OCaml 4.14 makes no minor collection when nothing was allocated. *)
let minor () =
  ignore (Sys.opaque_identity (ref 0));
  Gc.minor ()

(* --- how many ----------------------------------------------------------------------------------------------------- *)

(* Roots of all kinds of values at random, also of those that look as the end of a free list, deleted in all ways. *)
let counted () =
  let rng = Random.State.make [| 17 |] in
  let rnd n = Random.State.int rng n in
  (* more pools than are visited at once, so that deletions wait for the marker *)
  let roots = Array.make (if pool_capacity () > 100 then 20_000 else 1000) none and number = ref 0 in
  let value () = match rnd 4 with 0 -> Obj.repr 0 | 1 -> Obj.repr (rnd 1000) | _ -> Obj.repr (ref 0) in
  let delete r =
    decr number;
    match rnd 50 with 0 -> delete_elsewhere r | n when n < 10 -> delete_nolock r | _ -> delete r
  in
  for round = 1 to scale 30 do
    (match rnd 4 with 0 -> minor () | 1 -> ignore (Gc.major_slice 5000) | 2 -> collect () | _ -> ());
    for _ = 1 to rnd (Array.length roots) do
      let i = rnd (Array.length roots) in
      if roots.(i) <> none then (delete roots.(i); roots.(i) <- none)
      else begin
        roots.(i) <- (if rnd 2 = 0 then here else by_handle) (value ());
        incr number
      end
    done;
    delete_elsewhere_done ();
    let text = now () in
    if count live text <> !number then fail "round %d: %d are live, not\n%s" round !number text;
    expect "in no storage" text !number
  done

let by_storage () =
  let s = storage "connections" and other = storage "other" in
  let first = Array.init 1000 (fun i -> (if i mod 2 = 0 then stored else stored_by_handle) s (ref i)) in
  for i = 1 to 30 do ignore (stored other (ref i)) done;
  let wides = Array.init 500 (fun i -> wide (ref i)) in
  let plain = Array.init 7 here in
  for i = 0 to 99 do delete first.(i); wide_delete wides.(i) done;
  for i = 100 to 199 do delete_nolock first.(i) done;
  collect ();
  let text = now () in
  expect "in storage \"connections\"" text 800;
  expect "in storage \"other\"" text 30;
  expect "in storage \"wide roots\"" text 400;
  expect "in no storage" text 7;
  expect live text 1237;
  if not (storage_clear s) then fail "not cleared";
  let text = now () in
  expect "connections" text 0;
  expect live text 437;
  Array.iter delete plain;
  collect ();
  expect live (now ()) 430

(* Deletions of another domain's roots are about to be recorded; its pools keep what was in the storage until it
   collects. *)
let dropped_elsewhere () =
  let s = storage "shared" and step = Atomic.make 0 and roots = ref [||] in
  let await n = while Atomic.get step < n do Par.relax () done in
  let domain =
    Par.spawn (fun () ->
      roots := Array.init 3000 (fun i -> stored s (ref i));
      Atomic.set step 1;
      await 2)
  in
  await 1;
  Array.iteri (fun i r -> if i < 10 then delete r) !roots;
  expect "in storage \"shared\"" (now ()) 2990;
  if not (storage_clear s) then fail "not cleared";
  expect live (now ()) 0;
  Atomic.set step 2;
  Par.join domain

let changes () =
  let roots = Array.init 100 here in
  let text = now () in
  if Process.contains text "+" then fail "changes since nothing:\n%s" text;
  Array.iteri (fun i r -> if i < 30 then delete r) roots;
  collect ();
  register_variables 3 (ref 1);
  let text = now () in
  expect_line "boxroot: 70 (-30) live" text;
  expect_line "70       -30 in no storage" text;
  expect_line "3        +3 p_table" text;
  expect_line "(+4) cells" text;
  let text = now () in
  expect_line "70        +0 in no storage" text

(* --- who made them ------------------------------------------------------------------------------------------------ *)

(* The runtime for ThreadSanitizer brings libunwind, whose backtrace() has a destructor for threads that takes a mutex
   when ThreadSanitizer has left the thread. *)
let unwinds = "backtrace() crashes at the end of threads"
let start n = if not (sample n) then skip "the C library has no backtrace"

let all_sampled () =
  start 1;
  let mine = Array.init 700 (fun i -> here (ref i)) in
  let others = Array.init 300 (fun i -> if i mod 2 = 0 then there (ref i) else by_handle (ref i)) in
  for i = 1 to 3000 do brief (ref i) done;
  let s = storage "s" in
  for i = 1 to 40 do ignore (stored s i); ignore (stored_by_handle s i); ignore (wide i) done;
  let check () =
    let text = now () in
    expect "p_here" text 700;
    expect "p_there" text 150;
    expect "p_by_handle" text 150;
    expect " p_stored <" text 40;
    expect "p_stored_by_handle" text 40;
    expect "p_wide" text 40;
    expect "p_brief" text 0
  in
  check ();
  collect ();
  check ();
  (* old roots that are given young values move, and stay theirs who made them *)
  for i = 0 to 699 do mine.(i) <- Root.modify mine.(i) (ref i) done;
  check ();
  minor ();
  ignore (Gc.major_slice 1000);
  for i = 0 to 699 do mine.(i) <- Root.modify mine.(i) (ref i) done;
  check ();
  (* their slots are used again by others *)
  Array.iter delete mine;
  collect ();
  let text = now () in
  expect "p_here" text 0;
  expect "p_there" text 150;
  let more = Array.init 700 (fun i -> there (ref i)) in
  let text = now () in
  expect "p_here" text 0;
  expect "p_there" text 850;
  Array.iter delete others;
  Array.iter delete more

(* Those that are not drawn leave no trace of who had the slot before; what is deleted at once does not count, in
   whatever turns. *)
let some_sampled () =
  start 8;
  let n = 40_000 in
  let keep f = Array.init n (fun i -> let r = f (ref i) in brief i; if i mod 3 = 0 then brief i; r) in
  let near what text expected =
    let found = count what text in
    if abs (found - expected) > expected / 10 then fail "%s: about %d expected in\n%s" what expected text
  in
  let mine = keep here in
  let text = now () in
  near "p_here" text n;
  expect "p_brief" text 0;
  Array.iter delete mine;
  ignore (keep (fun v -> if Obj.magic !v land 1 = 0 then here v else there v));
  let text = now () in
  near "p_here" text (n / 2);
  near "p_there" text (n / 2)

(* Sampling begins beside roots that were made before, and ends; what was sampled before does not count. *)
let begins_and_ends () =
  let before = Array.init 5000 (fun i -> there (ref i)) in
  minor ();
  let inline_costs () =
    let slow = created_slowly () in
    for i = 1 to 10_000 do brief i done;
    created_slowly () - slow
  in
  let has_inline_paths = not (is_checked ()) && pool_capacity () > 1000 && inline_costs () < 1000 in
  start 1;
  minor ();
  if inline_costs () < 10_000 then fail "creations are inline, while they should be sampled";
  ignore (Array.init 100 here);
  Array.iteri (fun i r -> if i < 2500 then delete r) before;
  ignore (Array.init 200 here);
  let text = now () in
  expect "p_here" text 300;
  expect "p_there" text 0;
  expect live text 2800;
  if not (sample 0) then fail "sampling does not end";
  minor ();
  if has_inline_paths && inline_costs () > 1000 then fail "creations are not inline again";
  expect_line "is not known" (now ());
  start 1;
  minor ();
  ignore (Array.init 50 here);
  expect "p_here" (now ()) 50

(* Another thread of the domain knows the pool in which samples are taken, and would use their slots again inline. *)
let threads () =
  if is_tsan () then skip unwinds;
  let step = Atomic.make 0 in
  let await n = while Atomic.get step < n do Thread.yield () done in
  let other =
    Thread.create
      (fun () ->
        brief 0;
        Atomic.set step 1;
        await 2;
        ignore (Array.init 3000 there);
        Atomic.set step 3)
      ()
  in
  await 1;
  start 1;
  let mine = Array.init 1000 here in
  Array.iter delete mine;
  Atomic.set step 2;
  await 3;
  Thread.join other;
  let text = now () in
  expect "p_here" text 0;
  expect live text 3000

let domains () =
  if not (is_tsan ()) then start 3;
  let stop = Atomic.make false in
  let reporter = Par.spawn (fun () -> while not (Atomic.get stop) do ignore (now ()) done) in
  let kept = Array.init 3 (fun _ -> ref [||]) in
  let maker k () =
    for _ = 1 to scale 30 do
      Array.iter delete !(kept.(k));
      kept.(k) := Array.init 2000 (fun i -> brief i; if i mod 2 = 0 then here (ref i) else there (ref i))
    done
  in
  let makers = Array.init 3 (fun k -> Par.spawn (maker k)) in
  Array.iter Par.join makers;
  Atomic.set stop true;
  Par.join reporter;
  collect ();
  let text = now () in
  expect live text 6000;
  expect "p_brief" text 0;
  let sampled = count "p_here" text + count "p_there" text in
  if abs (sampled - 6000) > 1500 && not (is_tsan ()) then fail "%d, not about 6000, in\n%s" sampled text

(* --- registered cells --------------------------------------------------------------------------------------------- *)

let some_function x y = x + y + List.length Sys.(argv |> Array.to_list)

let registered () =
  if not (Root.setup ()) then fail "set-up";
  let cells text = count "cells that are registered" text in
  let before = cells (now ()) in
  if before > 40 then fail "OCaml's own modules are among the %d" before;
  register_variables 4 (ref 1);
  let partial = some_function (Sys.opaque_identity 1) in
  for i = 1 to 20 do ignore (register_allocated (Sys.opaque_identity (fun x -> x + i + partial i))) done;
  ignore (register_allocated (Int64.of_int (Sys.opaque_identity 5)));
  ignore (register_allocated (string_of_int (Sys.opaque_identity 5)));
  Callback.register "p_name" (ref 0);
  collect ();
  let text = now () in
  expect "p_table (report_stubs.c)" text 4;
  expect "p_exported" text 1;
  expect "a closure of camlReport" text 20;
  expect "a custom block _j" text 1;
  expect "holding a string" text 1;
  expect "named p_name" text 1;
  if cells text <> before + 28 then fail "%d before, then\n%s" before text;
  remove_variables 4;
  let text = now () in
  expect "p_table" text 0;
  if cells text <> before + 23 then fail "%d before, then\n%s" before text

let stripped () =
  let copy = Printf.sprintf "%s/stripped-%d" (Sys.getcwd ()) (Unix.getpid ()) in
  if Sys.command (Printf.sprintf "strip -o %s %s" copy (Filename.quote Sys.executable_name)) <> 0 then
    fail "strip";
  let status = Sys.command (copy ^ " do-small >stripped.txt 2>&1") in
  Sys.remove copy;
  let text = read "stripped.txt" in
  if status <> 0 then fail "it ended with %d:\n%s" status text;
  expect live text 100;
  if count "variables without names in the program" text < 4 then fail "no variables in\n%s" text;
  expect "p_here" text 100

let small () =
  start 1;
  register_variables 4 (ref 1);
  for i = 1 to 100 do ignore (here i) done;
  if not (report "") then fail "no report"

let without_lock () =
  for i = 1 to 100 do ignore (here (ref i)) done;
  report_without_lock ();
  let text = read "nolock.txt" in
  expect_line "100 in no storage" text;
  expect_line "cells are left out" text;
  if Process.contains text "cells that are" then fail "cells without the lock:\n%s" text

(* --- the environment ---------------------------------------------------------------------------------------------- *)

let runs name setting =
  match Process.run_self ~environment:[ "BOXROOT_REPORT=" ^ setting ] name with
  | Unix.WEXITED 0, said -> said
  | _, said -> fail "%s with %s failed: %s" name setting said

let makes_some () = for i = 1 to 100 do ignore (here (ref i)) done

let at_exit () =
  let said = runs "do-some" "exit,sample=1" in
  expect_line "report 1, at exit" said;
  expect "p_here" said 100;
  expect_line "cells" said;
  if runs "do-some" "exit,to=exit,1.txt" <> "" then fail "it is not all in the file";
  expect live (read "exit,1.txt") 100;
  let said = runs "do-some" "exit,to=/nowhere/file" in
  expect live said 100;
  let said = runs "do-some" "exit,what,sample=x" in
  expect_line "\"what\" cannot be done" said;
  expect_line "\"sample=x\" cannot be done" said;
  expect_line "at exit" said

let signalled () =
  makes_some ();
  raise_signal ();
  prerr_endline "signal";
  minor ();
  prerr_endline "collected"

let by_signal () =
  let said = runs "do-signalled" "USR1" in
  let rec after what = function line :: rest -> if line = what then rest else after what rest | [] -> [] in
  (match after "signal" (lines said) with
  | line :: _ -> if not (Process.contains line "report 1, by a signal") then fail "no report:\n%s" said
  | [] -> fail "no report:\n%s" said);
  expect live said 100;
  expect_line "cells" said;
  if after "collected" (lines said) <> [ "" ] then fail "not in the collection:\n%s" said;
  Unix.putenv "P_HANDLER" "1";
  expect_line "\"USR1\" cannot be done" (runs "do-signalled" "USR1")

let capped () =
  set_cap 20_000;
  let make n = for i = 1 to n do ignore (here i) done in
  make 19_000;
  if told () <> 0 then fail "told of %d" (told ());
  make 6_000;
  let first = told () in
  if first <= 20_000 then fail "told of %d" first;
  expect live (read "capped.txt") first;
  make (2 * first - 25_000);
  if told () <> first then fail "told of %d" (told ());
  make 10_000;
  if told () <= 2 * first then fail "told of %d" (told ());
  let second = told () in
  make 100_000;
  if told () <> second then fail "told a third time, of %d" (told ())

let () =
  main
    ([ ("counted", counted); ("by-storage", by_storage); ("dropped-elsewhere", dropped_elsewhere); ("changes", changes);
       ("all-sampled", all_sampled); ("some-sampled", some_sampled); ("begins-and-ends", begins_and_ends);
       ("threads", threads); ("domains", domains); ("registered", registered); ("stripped", stripped);
       ("without-lock", without_lock); ("at-exit", at_exit); ("by-signal", by_signal); ("capped", capped) ])
    ~unlisted:[ ("do-small", small); ("do-some", makes_some); ("do-signalled", signalled) ]
