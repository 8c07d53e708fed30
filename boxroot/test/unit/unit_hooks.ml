(* SPDX-License-Identifier: MIT *)
(* Other libraries' hooks; collectors that are not known (BOXROOT_CONSERVATIVE). *)

open Root
open Unit_common

let saw what (scans, begins, ends, _) =
  if scans = 0 || begins = 0 || ends = 0 then
    fail "%s: the other library's hooks saw %d scans, %d begins, %d ends" what scans begins ends

let end_a_domain what =
  if Par.multicore then begin
    ignore (Hooks.witness_saw ());
    Par.join (Par.spawn (fun () -> ignore (make 5)));
    let _, _, _, ended = Hooks.witness_saw () in
    if ended <> 1 then fail "%s: the other library saw %d domains end" what ended
  end

let hooks_before () =
  Hooks.witness_in ();
  let roots = make 1000 in
  minor ();
  saw "minor" (Hooks.witness_saw ());
  Gc.full_major ();
  saw "major" (Hooks.witness_saw ());
  check "with hooks before ours" roots;
  end_a_domain "before";
  ignore (eperm_blocking none)

let hooks_after () =
  let roots = make 1000 in
  Hooks.witness_in ();
  let more = make 1000 in
  minor ();
  saw "minor" (Hooks.witness_saw ());
  collect ();
  saw "major" (Hooks.witness_saw ());
  check "with hooks after ours" roots;
  check "with hooks after ours" more;
  end_a_domain "after";
  ignore (eperm_blocking none);
  Hooks.witness_out ();
  collect ();
  check "without the other hooks" roots;
  ignore (eperm_blocking none)

let teardown_takes_hooks_out () =
  ignore (Thread.create ignore ());
  Hooks.take 0;
  let once () =
    let roots = make 100 in
    collect ();
    check "hooks" roots;
    if Hooks.changed 0 = 0 then fail "the library works without hooks?";
    teardown ();
    if Hooks.changed 0 <> 0 then fail "%d hooks are still changed after boxroot_teardown" (Hooks.changed 0);
    Gc.full_major ();
    if not (setup ()) then fail "boxroot_setup failed";
    Gc.full_major ()
  in
  for _ = 1 to 5 do once () done

(* Another thread may call a hook at any moment; whatever was in it before our set-up is called too, once. *)
let hooks_while_attaching () =
  if not Par.multicore then skip "in OCaml 4.14 hooks are called under the lock under which they are set";
  if is_rival () then skip "0.4.0 leaves its hook in place at teardown";
  if is_tsan () then skip "the test looks at the hook without ordering";
  ignore (make 10);
  Hooks.call_while_attaching (scale 500_000)

let teardown_under_other_hooks () =
  (* ours cannot be taken out from below; they must do nothing, and not be installed a second time on top of
     themselves *)
  ignore (Thread.create ignore ());
  ignore (make 10);
  Hooks.witness_in ();
  for round = 1 to 20 do
    let roots = make 200 in
    ignore (Hooks.witness_saw ());
    collect ();
    saw "wrapped" (Hooks.witness_saw ());
    check "wrapped" roots;
    teardown ();
    collect ();
    saw "torn down" (Hooks.witness_saw ());
    if not (setup ()) then fail "boxroot_setup failed in round %d" round
  done;
  let roots = make 200 in
  ignore (Hooks.witness_saw ());
  minor ();
  let _, begins, _, _ = Hooks.witness_saw () in
  if begins <> 1 then fail "the other library saw %d minor collections instead of one" begins;
  Hooks.witness_out ();
  collect ();
  check "unwrapped" roots;
  teardown ();
  collect ();
  if not (setup ()) then fail "boxroot_setup failed";
  let roots = make 200 in
  collect ();
  check "at the end" roots;
  ignore (eperm_blocking none);
  ignore (eperm_thread none)

let conservative_only () = if not (is_conservative ()) then skip "about a library that takes the runtime for unknown"

(* A collector that keeps young values longer than one collection: values whose pools have been scanned are young
   still. *)
let values_stay_young () =
  conservative_only ();
  if is_checked () then skip "the checked build ends the program here";
  let early = make 3000 in
  minor ();
  let roots = make 3000 in
  Hooks.scan_that_promotes_nothing ();
  let more = make 3000 in
  Hooks.scan_that_promotes_nothing ();
  for _ = 1 to 3 do
    collect ();
    check "early" early; check "young" roots; check "younger" more
  done

(* A collector like that of OCaml 5.5: while a domain shows its roots to it, other domains run already, and delete some.
   A value that they have read before is still theirs, although their own roots have been looked at. *)
let deleted_beside_the_scan () =
  if not marks_late then conservative_only ();
  for _ = 1 to 3 do
    let roots = make 2000 and others = make 2000 in
    Gc.full_major ();
    Hooks.read_beside_the_scan roots;
    let waited = ref 0 in
    while not (Hooks.were_read roots) do
      incr waited;
      if !waited > 100_000 then fail "no major cycle begins";
      Gc.major ()
    done;
    for _ = 1 to 3 do collect (); check "read" roots; check "not read" others done;
    delete_all roots;
    delete_all others
  done

(* OCaml 5.5: a domain begins to mark, runs on and ends, while the one that adopts its roots has yet to show its own.
   Pools that the ended domain's marker may be reading are in one chain, not in two: each root is counted once, and what
   that marker has not read yet stays as it was, although half of the roots are deleted. *)
let ended_beside_the_scan () =
  if not marks_late then skip "the world stops until all roots are shown";
  if is_conservative () || is_stw () || is_rival () then skip "no marker reads pools";
  let n = 20 * pool_capacity () in
  for round = 1 to 5 do
    let own = make n and theirs = ref [||] and ready = Atomic.make false in
    let domain =
      Par.spawn (fun () ->
          theirs := make n;
          Atomic.set ready true;
          while not (Hooks.end_is_awaited ()) do Par.relax () done)
    in
    while not (Atomic.get ready) do Par.relax () done;
    Gc.full_major ();
    let adopted = stat "pools_adopted" and starts = stat "major_starts" in
    Hooks.mark_after_an_end ();
    Gc.minor ();
    if not (Hooks.ended_meanwhile ()) then fail "round %d: no domain ended before all roots were shown" round;
    if stat "pools_adopted" < adopted + 20 then fail "round %d: the roots were not adopted" round;
    if stat "major_starts" <> starts + 2 then fail "round %d: there are not two chains" round;
    let twice = stat "roots_last_cycle" - (2 * n) in
    if twice > n / 2 then fail "round %d: %d roots are in two chains" round twice;
    let left = Array.mapi (fun i r -> if i land 1 = 0 then r else (delete r; none)) !theirs in
    check "adopted" left;
    Par.join domain;
    check "own" own;
    for _ = 1 to 2 do collect (); check "adopted" left; check "own" own done;
    delete_all left;
    delete_all own
  done
