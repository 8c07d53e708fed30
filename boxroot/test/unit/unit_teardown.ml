(* SPDX-License-Identifier: MIT *)
(* Teardown; statistics. *)

open Root
open Unit_common

let teardown_then_setup () =
  for round = 1 to 30 do
    let roots = make (100 * round) in
    if round land 1 = 0 then collect ();
    if round land 2 = 0 then ignore (Gc.major_slice 50);
    let r = roots.(17) in
    Array.iteri (fun i r -> if i land 1 = 1 && i <> 17 then delete r) roots;
    teardown ();
    expect_tore_down r;
    if round land 4 = 0 then collect ();
    if not (setup ()) then fail "boxroot_setup after teardown failed: %s" (error_string ());
    if status () <> running then fail "status after re-setup: %d" (status ());
    let again = make 500 in
    collect ();
    check "after re-setup" again;
    delete_all again
  done

let teardown_mid_cycle () =
  for round = 0 to 60 do
    let roots = make 300 in
    Gc.minor ();
    ignore (make 10);
    for _ = 1 to round mod 12 do
      ignore (Gc.major_slice (1 + (round * 13)))
    done;
    Array.iteri (fun i r -> if i mod 5 = 0 then delete r) roots;
    teardown ();
    if round land 1 = 0 then Gc.full_major ();
    churn ();
    if not (setup ()) then fail "boxroot_setup failed";
    let again = make 300 in
    if round land 2 = 0 then collect () else churn ();
    check "after a teardown in mid-cycle" again;
    delete_all again
  done

let teardown_deletes_nothing_later () =
  let roots = make 5000 in
  collect ();
  teardown ();
  Array.iteri (fun i r ->
    match i land 3 with 0 -> delete r | 1 -> delete_plain r | 2 -> delete_nolock r | _ -> delete_elsewhere r) roots;
  delete_elsewhere_done ();
  collect ();
  if status () <> tore_down then fail "deletion after teardown changed the status"

let teardown_gives_memory_back () =
  if is_sanitized () then skip "under a sanitizer";
  let n = min 1_000_000 (700 * pool_capacity ()) in
  let roots = Array.make n none in
  let once () =
    for i = 0 to n - 1 do roots.(i) <- create_or_fail i done;
    teardown ();
    if not (setup ()) then fail "boxroot_setup failed"
  in
  once ();
  let resident = resident_kb () and virt = virtual_kb () in
  for _ = 1 to 15 do once () done;
  if resident_kb () > resident + 8000 then fail "resident memory grew from %d to %d KB over teardowns" resident
    (resident_kb ());
  if virtual_kb () > virt + 20_000 then fail "address space grew from %d to %d KB over teardowns" virt (virtual_kb ())

let statistics () =
  if is_rival () then skip "0.4.0 has no statistics for programs";
  let field = stat in
  if field "pools_in_use" <> 0 then fail "pools in use before the first root";
  let capacity = field "pool_capacity" in
  if field "pool_bytes" <> pool_bytes () then fail "pool_bytes is %d" (field "pool_bytes");
  if capacity < 1 || capacity > pool_bytes () / 8 then fail "pool_capacity is %d" capacity;
  let pools = 20 in
  let n = pools * capacity in
  let roots = make n in
  let used = field "pools_in_use" in
  if used < pools || used > pools + 3 then fail "%d pools are in use for %d full ones" used pools;
  if field "pools_peak" < used then fail "the peak is below the present";
  if field "bytes_reserved" < used * pool_bytes () then fail "bytes_reserved is %d" (field "bytes_reserved");
  if field "create_slow" > pools * 60 && not (is_checked ()) then
    fail "%d slow creations for %d pools" (field "create_slow") pools;
  let scans = field "minor_scans" in
  minor ();
  if field "minor_scans" <= scans then fail "a minor collection was not counted";
  (* pools are young once *)
  minor ();
  let slots = field "minor_slots" in
  for _ = 1 to 10 do minor () done;
  if field "minor_slots" - slots > 10 * 2 * capacity then
    fail "minor collections look at old roots: %d slots" (field "minor_slots" - slots);
  let starts = field "major_starts" + field "other_scans" in
  Gc.full_major ();
  if field "major_starts" + field "other_scans" <= starts then fail "a major collection was not counted";
  if field "roots_last_cycle" < n && field "major_starts" > 0 then
    fail "%d roots at the last cycle, of %d" (field "roots_last_cycle") n;
  let remote = field "delete_remote" in
  for i = 0 to (n / 2) - 1 do delete_nolock roots.(i) done;
  Gc.full_major ();
  if field "delete_remote" - remote < n / 2 then
    fail "%d of %d deletions without the lock were counted" (field "delete_remote" - remote) (n / 2);
  for i = n / 2 to n - 1 do delete roots.(i) done;
  for _ = 1 to 5 do Gc.full_major () done;
  if field "pools_in_use" > 4 then fail "%d pools are in use without a root" (field "pools_in_use");
  if field "pools_peak" < used then fail "the peak fell"

let statistics_printed () =
  if String.length (printed_stats ()) = 0 then fail "boxroot_print_stats prints nothing before the first root";
  let roots = make 10_000 in
  collect ();
  delete_all roots;
  let s = printed_stats () in
  if String.length s < 50 || not (String.contains s '\n') then fail "boxroot_print_stats prints %S" s
