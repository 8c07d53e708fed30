(* SPDX-License-Identifier: MIT *)
(* Replaced blocking-section hooks (OCaml 4.14). *)

open Root
open Regress_common

let hooks_replaced () =
  if Par.multicore then skip "needs OCaml 4.14";
  ignore (Thread.create ignore ());
  Hooks.take 0;
  let roots = make 1000 in
  Gc.minor ();
  ignore (eperm_blocking none);
  for round = 1 to 10 do
    Hooks.replace_blocking 0;
    if round land 1 = 0 then nap 100;
    if round land 2 = 0 then Thread.join (Thread.create (fun () -> nap 10; delete_all (make 10)) ());
    let more = make 3000 in
    if status () <> running then fail "status %d after the blocking-section hooks were replaced" (status ());
    Gc.minor ();
    let r = create_or_fail 1 in
    delete r;
    ignore (eperm_blocking none);
    ignore (eperm_thread none);
    nap 10;
    check "after the hooks were replaced" more;
    Gc.full_major ();
    check "after the hooks were replaced" roots;
    delete_all more
  done

(* A thread sleeps in a blocking section while the hooks are replaced under it, and goes on. *)
let hooks_replaced_under_sleeper () =
  if Par.multicore then skip "needs OCaml 4.14";
  ignore (Thread.create ignore ());
  Hooks.take 0;
  let first = make 10 in
  let result = ref [||] in
  let input, output = Unix.pipe () and there = ref false in
  let sleeps () =
    there := true;
    ignore (Unix.read input (Bytes.create 1) 0 1);
    result := make 100;
    nap 10;
    delete_all (make 100)
  in
  let t = Thread.create sleeps () in
  while not !there do Thread.yield () done;
  Hooks.replace_blocking 0;
  ignore (Unix.write output (Bytes.create 1) 0 1);
  Thread.join t;
  Gc.minor ();
  check "of a thread that slept" !result;
  check "first" first;
  ignore (eperm_blocking none);
  ignore (eperm_thread none)
