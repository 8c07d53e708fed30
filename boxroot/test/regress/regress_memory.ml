(* SPDX-License-Identifier: MIT *)
(* No memory; memory that is used again, and given back. *)

open Root
open Regress_common

(* A program in which the n-th request for memory fails (mode 1), or all from the n-th on until the failure has been
   seen (mode 2). Requests made by the GC's hooks can fail too when `always`. The number of failures. *)
let oom_program ~mode ~always ~domains n =
  let size = min 5000 ((3 * pool_capacity ()) + 10) in
  arm mode n;
  if not always then disarm ();
  let lasting = ref true in
  let attempt what f ok =
    let rec go tries =
      if tries > 3 then fail "%s fails forever" what;
      if !lasting then rearm mode;
      let x = f () in
      if not (ok x) then expect_enomem ();
      if not always then disarm ();
      if ok x then x
      else begin
        if mode = 2 then begin
          lasting := false;
          disarm ()
        end;
        go (tries + 1)
      end
    in
    go 1
  in
  let create v = attempt "boxroot_create" (fun () -> create v) (fun r -> r <> none) in
  let roots = Array.make size none in
  let fill i = if roots.(i) = none then roots.(i) <- create (text i) in
  for i = 0 to size - 1 do
    fill i;
    if i = size / 2 then Gc.minor ()
  done;
  check "created" roots;
  Gc.full_major ();
  check "collected" roots;
  for i = 0 to size - 1 do
    let v = text i in
    roots.(i) <- attempt "boxroot_modify" (fun () -> modify_keeps roots.(i) v) (fun r -> r <> none)
  done;
  check "modified" roots;
  ignore (Gc.major_slice 10);
  for i = 0 to size - 1 do
    if i land 1 = 0 then begin
      if i land 2 = 0 then delete roots.(i) else delete_nolock roots.(i);
      roots.(i) <- none
    end
  done;
  Gc.full_major ();
  check "deleted" roots;
  for i = 0 to size - 1 do fill i done;
  Root.compact ();
  check "filled again" roots;
  if domains then begin
    let theirs =
      in_domain (fun () ->
          let r = Array.init 50 (fun i -> create (text i)) in
          Gc.minor ();
          check "in a domain" r;
          r)
    in
    Gc.full_major ();
    check "of a domain" theirs;
    delete_all theirs
  end;
  check "at the end" roots;
  delete_all roots;
  for _ = 1 to 3 do Gc.full_major () done;
  let again = make 100 in
  disarm ();
  check "again" again;
  failures ()

let wait_for pid =
  match Unix.waitpid [] pid with
  | _, Unix.WEXITED n -> n
  | _, (Unix.WSIGNALED s | Unix.WSTOPPED s) -> if s = Sys.sigsegv then 139 else if s = Sys.sigabrt then 134 else 128

let out_of_memory ~domains ~mode ~always () =
  let n = ref 1 and going = ref true in
  while !going do
    flush_all ();
    (match Unix.fork () with
    | 0 -> (
        try exit_now (if oom_program ~mode ~always ~domains !n > 0 then 0 else 42)
        with e ->
          prerr_endline (Printexc.to_string e);
          exit_now 1)
    | pid -> (
        match wait_for pid with
        | 0 -> ()
        | 42 -> going := false
        | code -> fail "with request %d failing, the program ended with code %d" !n code));
    incr n;
    if !n > 5000 then fail "no end of requests"
  done;
  if !n < 3 then fail "the library asks for no memory?";
  Printf.printf "%d requests\n" (!n - 2)

let no_memory_for_domains () =
  if not Par.multicore then skip "needs OCaml 5";
  if is_tsan () then skip "TSan does not follow domains into a forked process";
  out_of_memory ~domains:true ~mode:1 ~always:true ()

(* At the limit of memory a program can go on with the roots that it has: one that is deleted makes room for another at
   once, whatever the collector is about, and however the deletion is recorded. *)
let exchange_without_memory () =
  if is_rival () then skip "0.4.0 has other pools";
  let exchange what n roots =
    for i = 0 to n - 1 do
      let k = i * 37 mod Array.length roots in
      delete roots.(k);
      roots.(k) <- create (text k);
      if roots.(k) = none then fail "%s: no room for a root in the place of the %dth that was deleted" what (i + 1)
    done
  in
  for slices = 0 to 6 do
    disarm ();
    let roots = ref [] and n = ref 0 in
    let pools = if pool_capacity () < 100 then 200 else 8 in
    let first = make (pools * pool_capacity ()) in
    Gc.full_major ();
    if slices > 0 then Gc.minor ();
    for _ = 2 to slices do ignore (Gc.major_slice 2000) done;
    arm 2 1;
    let full = ref false in
    while not !full do
      let r = create (text !n) in
      incr n;
      if r = none then full := true else roots := r :: !roots
    done;
    expect_enomem ();
    let rest = Array.of_list (List.rev !roots) in
    exchange (Printf.sprintf "old roots, %d slices" slices) 300 first;
    if rest <> [||] then exchange (Printf.sprintf "new roots, %d slices" slices) 300 rest;
    for k = 0 to 20 do
      let v = text k in
      delete first.(k + 21);
      let moved = modify_keeps first.(k) v in
      if moved = none then fail "no room for a modification in the place of a root that was deleted";
      first.(k) <- moved;
      first.(k + 21) <- create (text (k + 21));
      if first.(k + 21) = none then begin
        (* the old place of the modified root is the only one that is left *)
        expect_enomem ();
        fail "no room after a modification"
      end
    done;
    disarm ();
    check "exchanged" first;
    check "exchanged, new" rest;
    Gc.full_major ();
    check "exchanged and collected" first;
    check "exchanged and collected, new" rest;
    delete_all first;
    delete_all rest;
    Gc.full_major ()
  done

let cycles n =
  for _ = 1 to n do
    Gc.full_major ();
    for _ = 1 to 12 do
      ignore (Sys.opaque_identity (ref 0));
      Gc.minor ()
    done
  done

(* Pools that have lost most of their roots serve new ones. *)
let reuse () =
  let pools = 100 in
  let n = pools * pool_capacity () in
  let roots = Array.init n (fun i -> create_or_fail i) in
  let fill () = for i = 0 to n - 1 do if roots.(i) = none then roots.(i) <- create_or_fail i done in
  let start_kb = resident_kb () and start = pools_in_use () in
  let x = ref 1 in
  for round = 1 to 24 do
    Gc.minor ();
    for i = 0 to n - 1 do
      x := (!x * 1103515245) + 12345;
      if (!x lsr 8) land 3 <> 0 then begin
        delete roots.(i);
        roots.(i) <- none
      end
    done;
    if round land 1 = 0 then Gc.major ();
    fill ();
    if round land 3 = 0 then Gc.full_major ()
  done;
  if (not (is_rival ())) && pools_in_use () > start * 9 / 4 then
    fail "%d pools instead of %d for the same number of roots" (pools_in_use ()) start;
  (* in the checked build each pool in use has an account of seven times its size, which stays *)
  if not (is_sanitized () || is_checked ()) && resident_kb () > start_kb + (pools * 16 * 5 / 4) + 3000 then
    fail "resident memory grew from %d to %d KB for the same number of roots" start_kb (resident_kb ());
  Array.iteri (fun i r -> if get r <> i then fail "root %d changed" i) roots

(* The same between two minor collections, in two waves, at several points of the cycle: pools that have lost most of
   their roots are found, not only those that had lost them by the time of the first search. *)
let reuse_in_two_waves () =
  let pools = 600 in
  let n = pools * pool_capacity () in
  let used () = if is_rival () then resident_kb () / 16 else pools_in_use () in
  let roots = Array.init n (fun _ -> create_or_fail 1) in
  let start = used () in
  for slices = 0 to 7 do
    Gc.full_major ();
    for _ = 1 to slices do
      ignore (Gc.major_slice 100_000)
    done;
    for half = 0 to 1 do
      let first = half * n / 2 and last = ((half + 1) * n / 2) - 1 in
      for i = first to last do
        if i land 3 <> 0 then delete roots.(i)
      done;
      for i = first to last do
        if i land 3 <> 0 then roots.(i) <- create_or_fail 1
      done
    done
  done;
  if used () > start + (pools * 5 / 4) then fail "%d pools more for the same number of roots as %d held"
    (used () - start) pools

(* Roots go through one domain's hands to another's: created here, deleted there. *)
let reuse_after_remote_deletion () =
  let n = 30 * pool_capacity () in
  let n = min n 60_000 in
  let roots = Array.make n none in
  let peak = ref 0 in
  for round = 1 to 30 do
    for i = 0 to n - 1 do roots.(i) <- create_or_fail i done;
    (match round mod 3 with
    | 0 when Par.multicore -> in_domain (fun () -> delete_all roots)
    | 1 -> Array.iter delete_elsewhere roots
    | _ -> Array.iter delete_nolock roots);
    delete_elsewhere_done ();
    if round land 3 = 0 then Gc.full_major () else Gc.minor ();
    if round = 4 then peak := max (pools_in_use ()) (n / pool_capacity ())
  done;
  if (not (is_rival ())) && pools_in_use () > (!peak * 3 / 2) + 4 then
    fail "pools in use grew from %d to %d" !peak (pools_in_use ())

let give_back way () =
  if is_sanitized () then skip "under a sanitizer";
  if is_checked () then skip "the account of the checked build stays";
  let pools = 1500 in
  let n = pools * pool_capacity () in
  let roots = Array.make n 1 in
  Root.compact ();
  let start = resident_kb () in
  for i = 0 to n - 1 do roots.(i) <- create_or_fail i done;
  Gc.full_major ();
  let full = resident_kb () in
  way roots;
  delete_elsewhere_done ();
  cycles 25;
  let after = resident_kb () in
  if after - start > (full - start) / 4 then
    fail "resident memory was %d KB, %d KB with %d roots, and still is %d KB without" start full n after;
  (* and the library goes on *)
  let roots = make 1000 in
  Gc.full_major ();
  check "after memory was given back" roots

let give_back_local = give_back delete_all
let give_back_nolock = give_back (Array.iter delete_nolock)
let give_back_elsewhere = give_back (Array.iter delete_elsewhere)
let give_back_other_domain = give_back (fun roots -> in_domain (fun () -> delete_all roots))

let give_back_ended_domain () =
  if is_sanitized () then skip "under a sanitizer";
  if is_checked () then skip "the account of the checked build stays";
  let n = min 1_000_000 (1000 * pool_capacity ()) in
  let roots = Array.make n none in
  Root.compact ();
  let start = resident_kb () in
  let in_main = create_or_fail 1 in
  in_domain (fun () -> for i = 0 to n - 1 do roots.(i) <- create_or_fail i done);
  Gc.full_major ();
  let full = resident_kb () in
  delete_all roots;
  cycles 25;
  if resident_kb () - start > (full - start) / 3 then
    fail "resident memory was %d KB, %d KB with %d roots of an ended domain, and still is %d KB without" start full n
      (resident_kb ());
  delete in_main
