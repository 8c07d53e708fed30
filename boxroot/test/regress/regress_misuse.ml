(* SPDX-License-Identifier: MIT *)
(* Misuse, which the checked build reports; use after teardown; the kernel refuses to take memory back. *)

open Root
open Regress_common

let expect_fault name fault () =
  if not (is_checked ()) then skip "only in the checked build";
  Process.expect_fault ("do-" ^ name) [ fault ]

let misuses =
  let dead () =
    let roots = make 10 in
    let r = roots.(4) in
    delete r;
    r
  in
  let old_dead () =
    let roots = make 10 in
    Gc.full_major ();
    let r = roots.(4) in
    delete r;
    r
  in
  let without_lock_dead () =
    let roots = make 10 in
    delete_nolock roots.(4);
    roots.(4)
  in
  let torn () =
    let roots = make 10 in
    teardown ();
    if not (setup ()) then fail "boxroot_setup failed";
    roots.(4)
  in
  let live () = (make 10).(4) in
  [ ("get-after-delete", "use after delete", "get", dead);
    ("get-ref-after-delete", "use after delete", "get_ref", dead);
    ("modify-after-delete", "use after delete", "modify", dead);
    ("old-get-after-delete", "use after delete", "get", old_dead);
    ("get-after-delete-nolock", "use after delete", "get", without_lock_dead);
    ("double-delete", "double delete", "delete", dead);
    ("old-double-delete", "double delete", "delete", old_dead);
    ("double-delete-nolock", "double delete", "delete", without_lock_dead);
    ("foreign-get", "foreign pointer", "foreign get", live);
    ("foreign-delete", "foreign pointer", "foreign delete", live);
    ("foreign-modify", "foreign pointer", "foreign modify", live);
    ("heap-delete", "foreign pointer", "heap delete", live);
    ("stack-delete", "foreign pointer", "stack delete", live);
    ("inside-delete", "foreign pointer", "inside delete", live);
    ("header-delete", "foreign pointer", "header delete", live);
    ("null-delete", "foreign pointer", "null delete", live);
    ("null-get", "foreign pointer", "null get", live); ("delete-after-teardown", "use after teardown", "delete", torn);
    ("get-after-teardown", "use after teardown", "get", torn) ]

let misuse_tests = List.map (fun (name, fault, _, _) -> ("misuse-" ^ name, expect_fault name fault)) misuses

let misuse_doers =
  List.map (fun (name, _, what, prepare) -> ("do-" ^ name, fun () -> misuse what (prepare ()))) misuses

(* A program that has roots left after teardown may use them until the next set-up. *)
let misuse_after_teardown_release () =
  let roots = make 1000 in
  Gc.minor ();
  let young = make 100 in
  teardown ();
  Array.iter (fun r -> ignore (Sys.opaque_identity (get_ref r))) roots;
  Array.iteri (fun i r ->
    if i land 1 = 0 then ignore (Sys.opaque_identity (deref (get_ref r) : Obj.t)) else delete r) roots;
  Array.iter delete_nolock young;
  Array.iter (fun r -> if modify r 1 <> none then fail "boxroot_modify succeeded after teardown") roots;
  Gc.full_major ()

(* Memory is given back by the system's pages, and nothing depends on whether the system takes it. *)
let pages size refuse () =
  kernel size refuse;
  let capacity = pool_capacity () in
  let pools = if capacity < 1000 then 400 else 60 in
  let n = pools * capacity in
  for round = 1 to 6 do
    let roots = make n in
    Gc.minor ();
    (* all roots of most pools: of single ones, and of runs of up to 20 *)
    let gone i =
      let p = i / capacity in
      match round with 1 -> p mod 2 = 0 | 2 -> p mod 4 <> 3 | 3 -> p mod 20 <> 0 | 4 -> p > 2 | 5 -> p mod 8 > 3
        | _ -> true
    in
    Array.iteri (fun i r ->
      if gone i then begin (if i land 1 = 0 then delete r else delete_nolock r); roots.(i) <- none end) roots;
    if round land 1 = 0 then Root.compact () else for _ = 1 to 4 do Gc.full_major () done;
    churn 1000;
    check "after memory was given back" roots;
    let more = make (n / 2) in
    Gc.full_major ();
    check "after memory was given back and used again" roots;
    check "in memory used again" more;
    delete_all roots;
    delete_all more;
    if round = 5 then begin
      teardown ();
      if not (setup ()) then fail "boxroot_setup failed"
    end
  done;
  if refuse && given () > 0 then fail "the kernel did not refuse";
  if (not refuse) && given () = 0 && capacity > 1000 && size < 1 lsl 20 then fail "no memory was given back"
