(* SPDX-License-Identifier: MIT *)
(* Tests in a program without systhreads: nobody but the library is in the hooks, and C code can pass between
   domains. *)

open Root

external start_foreign : unit -> unit = "s_start_foreign"
external foreign_enters : int -> int -> unit = "s_foreign_enters"
external foreign_check : int -> int = "s_foreign_check"
external park : unit -> unit = "s_park"
external unpark : unit -> unit = "s_unpark"
external wait_parked : unit -> unit = "s_wait_parked"
external race : int -> int -> int = "s_race"

let text i = string_of_int (i * 7919)
let make n = Array.init n (fun i -> create_or_fail (text i))
let check what roots = Array.iteri (fun i r ->
  if (get r : string) <> text i then fail "%s: root %d lost its value" what i) roots

let collect () =
  Gc.minor ();
  for i = 1 to 20_000 do
    ignore (Sys.opaque_identity (text i))
  done;
  Gc.full_major ()

(* A program that makes no root has no hooks of ours, whatever else it asks. *)
let idle () =
  Hooks.take 0;
  if status () <> not_setup then fail "status %d" (status ());
  ignore (pools_in_use ());
  collect ();
  Root.compact ();
  if Par.multicore then Par.join (Par.spawn collect);
  if Par.multicore then ignore (eperm_thread none);
  nap 10;
  if Hooks.changed 0 <> 0 then fail "%d hooks are installed in a program without roots" (Hooks.changed 0);
  if status () <> not_setup then fail "status %d after nothing" (status ());
  ignore (make 1);
  if Hooks.changed 0 = 0 then fail "the first root installs no hook?";
  if status () <> running then fail "status %d after a root" (status ())

(* The lock is told apart without the help of systhreads. *)
let lock_without_systhreads () =
  let roots = make 100 in
  ignore (eperm_blocking none);
  ignore (eperm_thread none);
  Array.iteri (fun i r -> if i land 1 = 0 then delete_nolock r else delete_elsewhere r) roots;
  delete_elsewhere_done ();
  collect ();
  let roots = make 100 in
  collect ();
  check "after deletions without the lock" roots;
  ignore (eperm_blocking roots.(0))

let hooks_replaced () =
  if Par.multicore then skip "needs OCaml 4.14";
  Hooks.take 0;
  let roots = make 100 in
  for _ = 1 to 10 do
    Hooks.replace_blocking 0;
    let more = make 3000 in
    if status () <> running then fail "status %d after the blocking-section hooks were replaced" (status ());
    Gc.minor ();
    delete (create_or_fail 1);
    ignore (eperm_blocking none);
    ignore (eperm_thread none);
    nap 10;
    check "after the hooks were replaced" more;
    Array.iter delete more
  done;
  collect ();
  check "after the hooks were replaced" roots

(* One C thread enters one domain after the other and creates, modifies and deletes roots in each. *)
let change_of_domain () =
  if not Par.multicore then skip "needs OCaml 5";
  start_foreign ();
  let mine = make 50 in
  for round = 1 to 20 do
    let id = Atomic.make (-1) in
    let d =
      Par.spawn (fun () ->
          let roots = make 50 in
          Atomic.set id (Hooks.domain_slot ());
          park ();
          Gc.minor ();
          check "of the visited domain" roots;
          Array.iter delete roots)
    in
    wait_parked ();
    foreign_enters (Atomic.get id) round;
    foreign_enters 0 round;
    foreign_enters (Atomic.get id) round;
    unpark ();
    Par.join d;
    collect ();
    check "of the main domain" mine;
    let bad = foreign_check round in
    if bad > 0 then fail "round %d: %d roots of the C thread lost their values" round bad
  done

(* The same while the first domain goes on creating: its pools are its own. *)
let change_of_domain_race () =
  if not Par.multicore then skip "needs OCaml 5";
  start_foreign ();
  let n = scale 1_000_000 in
  for round = 1 to 8 do
    let id = Atomic.make (-1) and go = Atomic.make false in
    let bad = Atomic.make 0 in
    let d =
      Par.spawn (fun () ->
          Atomic.set id (Hooks.domain_slot ());
          park ();
          while not (Atomic.get go) do Par.relax () done;
          Atomic.set bad (race 1 n))
    in
    wait_parked ();
    foreign_enters (Atomic.get id) 1;
    unpark ();
    Atomic.set go true;
    let worse = race 2 n in
    Par.join d;
    if Atomic.get bad + worse > 0 then fail "round %d: %d roots of two domains were mixed up" round
      (Atomic.get bad + worse)
  done

let () =
  Root.main
    [ ("idle", idle); ("lock-without-systhreads", lock_without_systhreads); ("hooks-replaced", hooks_replaced);
      ("change-of-domain", change_of_domain);
      ("change-of-domain-race", change_of_domain_race) ]
