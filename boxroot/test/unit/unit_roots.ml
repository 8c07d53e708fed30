(* SPDX-License-Identifier: MIT *)
(* The life of a root; what it costs; errors. *)

open Root
open Unit_common

let basics () =
  let n = 5000 in
  let roots = make n in
  check "at once" roots;
  let refs = Array.map get_ref roots in
  collect ();
  check "after collections" roots;
  Array.iteri (fun i r -> if (deref refs.(i) : Obj.t) != get r then fail "boxroot_get_ref of %d is stale" i) roots;
  Array.iteri (fun i r -> if i land 1 = 0 then (delete r; roots.(i) <- none)) roots;
  collect ();
  check "after deletions" roots;
  let more = make n in
  collect ();
  check "old" roots;
  check "new" more;
  delete_all roots;
  delete_all more

let modification () =
  let n = 3000 in
  let roots = Array.init n (fun i -> create_or_fail i) in
  let collections () = (Gc.quick_stat ()).Gc.minor_collections in
  (* the cell changes at most once between two minor collections *)
  let steady i v =
    let before = collections () in
    roots.(i) <- modify roots.(i) v;
    let cell = roots.(i) in
    for k = 1 to 5 do roots.(i) <- modify roots.(i) k done;
    roots.(i) <- modify roots.(i) v;
    if roots.(i) <> cell && collections () = before then
      fail "root %d moved more than once between two minor collections" i
  in
  for i = 0 to n - 1 do steady i (text i) done;
  check "fresh" roots;
  collect ();
  check "collected" roots;
  for round = 1 to 3 do
    Array.iteri (fun i r -> roots.(i) <- modify r [ round ]) roots;
    for i = 0 to n - 1 do steady i (text i) done;
    if round = 2 then Gc.minor () else collect ();
    check "modified" roots
  done;
  (* the old value is let go *)
  let w = Weak.create 1 in
  let r = create_or_fail (text 1) in
  Weak.set w 0 (Some (get r));
  let r = modify r 0 in
  Gc.full_major ();
  Gc.full_major ();
  if Weak.check w 0 then fail "the value that a modification replaced is kept alive";
  delete r;
  delete_all roots

let liveness () =
  let n = 200 in
  let w = Weak.create n in
  let fill i =
    let s = Sys.opaque_identity (text i) in
    Weak.set w i (Some s);
    create_or_fail s
  in
  let roots = Array.init n fill in
  Gc.full_major ();
  for i = 0 to n - 1 do
    if not (Weak.check w i) then fail "the value of root %d was collected" i
  done;
  Array.iteri
    (fun i r ->
      match i land 3 with 0 -> delete r | 1 -> delete_nolock r | 2 -> delete_elsewhere r | _ -> ())
    roots;
  delete_elsewhere_done ();
  for _ = 1 to 4 do Gc.full_major () done;
  for i = 0 to n - 1 do
    if Weak.check w i <> (i land 3 = 3) then fail "root %d: its value is %s" i (if i land 3 = 3 then "gone"
                                                                                  else "kept alive after deletion")
  done

let nothing_allocated () =
  (* boxroot_create never runs the GC: a value in a register is good afterwards, whatever number of roots is made *)
  let roots = Array.make 20_000 none in
  minor ();
  let s = Sys.opaque_identity (ref 0) in
  let before = (Gc.quick_stat ()).Gc.minor_collections in
  for i = 0 to 19_999 do roots.(i) <- create s done;
  if (Gc.quick_stat ()).Gc.minor_collections > before + 1 then fail "creation runs the GC";
  delete_all roots

(* Some of `n` roots are deleted at random, or all, and as many created, again and again. Those deleted are young, or,
   after a minor collection, old. *)
let replace n use =
  let roots = Array.make n none in
  use roots;
  let random = Random.State.make [| n |] in
  List.iter
    (fun (percent, are_old) ->
      if are_old then minor ();
      Array.iteri (fun i r -> if Random.State.int random 100 < percent then (delete r; roots.(i) <- none)) roots;
      use roots)
    [ (3, false); (50, true); (2, true); (98, true); (10, true); (100, true); (5, false); (30, false) ];
  delete_all roots

(* One creation in 128 leaves the inline path. *)
let slow_creations () =
  if is_rival () || is_checked () || pool_capacity () < 128 then skip "each creation is a call, or pools are tiny";
  let slow () = stat "create_slow" in
  replace 100_000 (fun roots ->
      let before = slow () in
      let n = create_missing roots in
      Printf.printf "%d of %d creations\n" (slow () - before) n;
      if slow () - before > (n / 128) + 8 then fail "%d of %d creations left the inline path" (slow () - before) n)

(* For test_cost.py. *)
let work_of_creations () =
  let live = int_of_string (Sys.getenv "BOXROOT_TEST_LIVE") in
  replace live (fun roots -> Printf.printf "created %d\n" (create_missing roots))

let many () =
  let n = if is_sanitized () || pool_capacity () < 100 then 20_000 else 300_000 in
  let roots = make n in
  collect ();
  check "many" roots;
  for i = 0 to n - 1 do
    let j = i * 7919 mod n in
    if roots.(j) <> none && j land 3 <> 0 then begin
      delete roots.(j);
      roots.(j) <- none
    end
  done;
  collect ();
  check "many" roots;
  delete_all roots

(* Handlers may delete where the interrupted thread does not hold the lock, also in the middle of a deletion. Nothing is
   lost: neither a deletion, which would keep a pool in use, nor a slot, which would be handed out twice. *)
let handlers ~blocking () =
  if is_checked () then skip "the checked build allocates";
  if is_rival () then skip "0.4.0 locks in deletions";
  block_alarms ();
  let stop = Atomic.make false in
  let collector () = while not (Atomic.get stop) do minor (); churn (); Gc.full_major () done in
  let other = if Par.multicore then Some (Par.spawn collector) else None in
  let n = min 60_000 (4000 * pool_capacity ()) in
  let rec round handled =
    if handled < scale 3000 then (
      let handled = handled + delete_in_handlers blocking (make n) in
      let roots = make 5000 in
      minor ();
      check "after handlers" roots;
      let cells = List.sort_uniq compare (Array.to_list roots) in
      if List.length cells < 5000 then fail "a slot was handed out twice";
      delete_all roots;
      round handled) in
  round 0;
  Atomic.set stop true;
  Option.iter Par.join other;
  for _ = 1 to 3 do Gc.full_major () done;
  let left = pools_in_use () in
  if left > 10 + (100 / pool_capacity ()) then fail "%d pools are in use when all roots have been deleted" left

let eperm_before_setup () =
  if not Par.multicore then ignore (setup ());
  ignore (eperm_thread none);
  ignore (eperm_blocking none);
  let r = create_or_fail (text 0) in
  check_text "after failures" r 0

let eperm_setup () =
  if not Par.multicore then ignore (setup ());
  eperm_setup ();
  let r = create_or_fail (text 0) in
  eperm_setup ();
  if status () <> running then fail "a failure changed the status";
  check_text "after failures" r 0

let eperm () =
  let r = create_or_fail (text 0) in
  let r = eperm_thread r in
  check_text "after failures on a thread" r 0;
  let r = eperm_blocking r in
  check_text "after failures in a blocking section" r 0;
  (* also when the root is old, and the pool could take the immediate in place *)
  Gc.minor ();
  let r = eperm_thread r in
  let r = eperm_blocking r in
  Gc.full_major ();
  check_text "old, after failures" r 0;
  if status () <> running then fail "a failure changed the status";
  let r = modify r (text 1) in
  check_text "modified" r 1;
  if pool_capacity () < 100_000 then begin
    (* ... and when the call would have to look for a pool anyway *)
    let roots = make (pool_capacity ()) in
    ignore (eperm_thread none);
    check "full pool" roots
  end

let statuses () =
  if status () <> not_setup then fail "status before anything: %d" (status ());
  if not (setup ()) then fail "boxroot_setup failed";
  if status () <> running then fail "status after setup: %d" (status ());
  if not (setup ()) then fail "a second boxroot_setup failed";
  let r = create_or_fail 1 in
  teardown ();
  if status () <> tore_down then fail "status after teardown: %d" (status ());
  teardown ();
  if status () <> tore_down then fail "status after a second teardown: %d" (status ());
  expect_tore_down r

let no_setup_needed () =
  let r = create_or_fail (text 3) in
  if status () <> running then fail "status after the first root: %d" (status ());
  collect ();
  check_text "first root" r 3
