(* SPDX-License-Identifier: MIT *)
(* Copies and files made by a second process: what others wait for, and what a program could notice of it. *)
open Outheap_region
open Region_checks
open Region_images

external patience : int -> unit = "region_test_patience" [@@noalloc]
external seconds : bool -> int = "region_test_seconds"
external subreaper : bool -> unit = "region_test_subreaper"
external sandbox : int -> bool = "region_test_sandbox"
external shared_array : unit -> (int, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
  = "region_test_shared_array"

(* Threads where domains cannot run beside each other: none are needed if there is no patience. *)
let while_doing f work =
  let stop = Atomic.make false in
  let other =
    if Region_domains.recommended > 1 then Region_domains.spawn (fun () -> while not (Atomic.get stop) do f () done)
    else fun () -> ()
  in
  Fun.protect work ~finally:(fun () -> Atomic.set stop true; other ())

let second () = (stats ()).second
let words n = List.init n (fun i -> Some (string_of_int i))

(* How long others wait: with a second process much less than without, and never for its part. *)
let waits () =
  if Sys.getenv_opt "TSAN_OPTIONS" = None && Region_domains.recommended > 1 then
    with_file "waits" @@ fun path ->
    let v = words 1_500_000 and strings : string option list schema = schema ~name:"strings" ~version:1 in
    while_doing (fun () -> ignore (opaque (ref 0))) @@ fun () ->
    let before = second () in
    let r = ok "copy" (copy v) in
    let short = (stats ()).longest_wait in
    check "equal" (get r = v);
    ok "save" (save strings ~path v);
    check "equal in the file" (get (ok "map" (map strings ~path ())) = v);
    let shorter = (stats ()).longest_wait in
    check "by a second process" (second () = before + 2);
    let r = ok "exclusive" (copy ~exclusive:true v) in
    check "equal" (get r = v);
    let long = (stats ()).longest_wait in
    check "alone" (second () = before + 2);
    check (Printf.sprintf "waited %d, %d and %d ns" short shorter long) (2 * short < long && 2 * shorter < long)

(* A copy is that of a moment: another domain writes words and bytes from the first to the last, again and again. *)
let moments () =
  patience 0;
  let n = 200_000 in
  let cells = Array.make n (ref 0) and numbers = Array.make n 0 and bytes = Bytes.make n '\000' in
  let round = ref 0 in
  let write () =
    incr round;
    let r = ref !round in
    for i = 0 to n - 1 do
      cells.(i) <- r;
      numbers.(i) <- !round;
      Bytes.set bytes i (Char.chr (!round land 255))
    done
  in
  write ();
  while_doing write @@ fun () ->
  for _ = 1 to 10 do
    let c, m, b = get (ok "copy" (copy (cells, numbers, bytes))) in
    let last = !(c.(0)) and changed = ref 0 in
    check "words" (m.(0) = last || m.(0) = last - 1);
    check "bytes" (Char.code (Bytes.get b 0) = m.(0) land 255 || Char.code (Bytes.get b 0) = (m.(0) - 1) land 255);
    for i = 1 to n - 1 do
      if c.(i) != c.(i - 1) || m.(i) <> m.(i - 1) || Bytes.get b i <> Bytes.get b (i - 1) then incr changed
    done;
    check (Printf.sprintf "%d changes" !changed) (!changed <= 3)
  done

(* The collector marks an array while another domain stores numbers there. ThreadSanitizer has no part in that. *)
let beside_marking () =
  let numbers = Array.make 200_000 0 and round = ref 0 in
  let write () =
    incr round;
    for i = 0 to Array.length numbers - 1 do numbers.(i) <- !round done;
    slice 20_000 (* a cycle needs both *)
  in
  let cycles () = (Gc.quick_stat ()).major_collections in
  while_doing write (fun () ->
      let last = cycles () + 10 in
      while cycles () < last do slice 20_000 done);
  ignore (opaque numbers)

(* Two domains store pointers to one field: ThreadSanitizer reports that, as with the stock runtime. *)
let race () =
  let cell = opaque (ref None) in
  let write () = for i = 1 to 10_000 do cell := Some i done in
  while_doing write (fun () -> for _ = 1 to 10 do write () done)

(* The program sees no child, no signal, no open file; a limit, a filter or a killed process only make others wait. *)
let unseen () =
  patience 0;
  let v = words 200_000 in
  let signals = ref 0 in
  let copies what n =
    let before = second () in
    check (what ^ ": equal") (get (ok what (copy v)) = v);
    check (Printf.sprintf "%s: %d" what (second () - before)) (second () = before + n)
  in
  let usual = if Sys.getenv_opt "TSAN_OPTIONS" = None then 1 else 0 in
  let previous = Sys.signal Sys.sigchld (Sys.Signal_handle (fun _ -> incr signals)) in
  let files = Array.length (Sys.readdir "/proc/self/fd") in
  let no_child () = match Unix.waitpid [ WNOHANG ] (-1) with
    | pid, _ -> check (Printf.sprintf "child %d" pid) false
    | exception Unix.Unix_error (ECHILD, _, _) -> () in
  copies "usual" usual;
  no_child ();
  Sys.set_signal Sys.sigchld Sys.Signal_ignore;
  copies "signal ignored" usual;
  Sys.set_signal Sys.sigchld (Sys.Signal_handle (fun _ -> incr signals));
  if Region_domains.recommended = 1 || usual = 0 then () (* domains come last: a program with some cannot fork *)
  else (
    List.iter
      (fun kind ->
        let s = in_child (fun () -> if sandbox kind then copies "filtered" 0; if !failures > 0 then 1 else 0) in
        check ("filter: " ^ status s) (s = WEXITED 0))
      [ 0; 1 ];
    (* The second process does not outlive a program that ends early. *)
    subreaper true;
    let child () =
      while seconds false = 0 do () done;
      Unix.kill (Unix.getpid ()) Sys.sigkill;
      0 in
    let s = in_child (fun () ->
        let other = Region_domains.spawn child in
        while true do ignore (copy v) done;
        other ()) in
    check ("killed: " ^ status s) (s = WSIGNALED Sys.sigkill);
    let rec none_left () = match Unix.waitpid [] (-1) with
      | exception Unix.Unix_error (ECHILD, _, _) -> () (* for ever, if it lives on *)
      | _ -> none_left () in
    none_left ();
    subreaper false);
  signals := 0;
  if usual = 1 then (
    let killed = ref 0 and busy = Atomic.make true in
    while_doing (fun () -> no_child (); if Atomic.get busy then killed := !killed + seconds true) (fun () ->
        for _ = 1 to 20 do check "killed: equal" (get (ok "copy" (copy v)) = v) done;
        Atomic.set busy false);
    check "some were killed" (Region_domains.recommended = 1 || !killed > 0);
    check "none is left" (seconds false = 0));
  copies "usual" usual;
  no_child ();
  check "no signal" (!signals = 0);
  check "no file" (Array.length (Sys.readdir "/proc/self/fd") = files);
  (* What others write to without the heap's knowledge is copied while all wait. *)
  check "shared memory" (let a = shared_array () in
                         let before = second () in
                         let b = get (ok "copy" (copy (a, v))) in
                         a.{7} = (fst b).{7} && second () = before);
  Sys.set_signal Sys.sigchld previous
