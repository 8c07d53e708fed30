(* SPDX-License-Identifier: MIT *)
(* What the contract promises in rare situations: threads whose domain has ended, memory
   after much came and went, a flood of deletions, another life after a teardown. *)

open Root

external last_act : int -> Root.t array -> bool -> unit = "c_last_act"
external late_act : int -> unit = "c_late_act"
external late_roots : Root.t array -> unit = "c_late_roots"
external may_act : unit -> unit = "c_may_act"
external wait_about : int -> unit = "c_wait_about"
external wait_over : int -> unit = "c_wait_over"
external creations_granted : unit -> int = "c_creations_granted"
external delete_on_thread : Root.t array -> int -> int = "c_delete_on_thread"
external deleted : unit -> int = "c_deleted"
external by_handle : 'a -> int -> bool = "c_by_handle"
external trim_malloc : unit -> unit = "c_trim_malloc"
external is_paced : unit -> bool = "c_is_paced"
external by_address : 'a -> unit = "c_by_address"
external error_string : unit -> string = "c_error_string"
external handle_without_lock : unit -> unit = "c_handle_without_lock"

let resident_kb () =
  trim_malloc ();
  resident_kb ()

let text i = "value " ^ string_of_int i
let make n = Array.init n (fun i -> create_or_fail (text i))

let check what roots =
  let bad = ref 0 in
  Array.iteri
    (fun i r ->
      if r <> none then begin
        let v : Obj.t = get r in
        if not (Obj.is_block v && Obj.tag v = Obj.string_tag && String.equal (Obj.obj v) (text i)) then incr bad
      end)
    roots;
  if !bad > 0 then fail "%s: %d of %d roots lost their values" what !bad (Array.length roots)

let delete_all roots = Array.iter (fun r -> if r <> none then delete r) roots
let churn n = for i = 1 to n do ignore (Sys.opaque_identity (text i)) done

(* Roots of values that a weak array watches; collected when it is empty. *)
let watched n =
  let w = Weak.create n in
  let roots =
    Array.init n (fun i ->
        let v = Sys.opaque_identity (text i) in
        Weak.set w i (Some v);
        create_or_fail v)
  in
  (w, roots)

let left w =
  let n = ref 0 in
  for i = 0 to Weak.length w - 1 do if Weak.check w i then incr n done;
  !n

let expect_collected what w =
  for _ = 1 to 8 do if left w > 0 then Gc.full_major () done;
  if left w > 0 then fail "%s: %d of %d values are never collected although their roots were deleted" what (left w)
    (Weak.length w)

(* --- threads whose domain has ended ------------------------------------------------------------------------------- *)

let ended_thread how () =
  let w, roots = watched 300 in
  let others = make 300 in
  Gc.full_major ();
  Par.join (Par.spawn (fun () -> delete (create_or_fail "mine"); last_act how roots false));
  wait_over 1;
  if creations_granted () > 0 then fail "boxroot_create succeeded on the thread of a domain that has ended";
  expect_collected "deleted by the thread of an ended domain" w;
  check "of the main domain" others;
  delete_all others

(* Its own roots, which other domains have adopted meanwhile, or not. *)
let ended_thread_own how () =
  let kept = ref [||] in
  for round = 1 to 20 do
    let w = ref (Weak.create 1) in
    Par.join
      (Par.spawn (fun () ->
           let w', mine = watched 100 in
           w := w';
           kept := make 100;
           last_act how mine false));
    if round land 1 = 0 then Gc.full_major ();
    wait_over round;
    expect_collected "of an ended domain, deleted by its thread" !w;
    check "of an ended domain" !kept;
    delete_all !kept
  done;
  if creations_granted () > 0 then fail "boxroot_create succeeded on the thread of a domain that has ended"

(* The thread of an ended domain and the next domain of the same identity delete roots of the main domain at the same
   time. *)
let ended_thread_and_successor how () =
  for round = 1 to scale 30 do
    let mine = make 4000 in
    let dying = make 4000 in
    let w, others = watched 4000 in
    (* in between, so that the pools are mixed *)
    let dying' = make 4000 in
    Par.join (Par.spawn (fun () -> last_act how (Array.append dying dying') true));
    wait_about round;
    let successor = Par.spawn (fun () ->
        let own = make 2000 in
        may_act ();
        Array.iter delete others;
        let more = make 2000 in
        churn 1000;
        check "of the successor" own;
        check "of the successor, later" more;
        delete_all own;
        delete_all more)
    in
    churn 1000;
    Par.join successor;
    wait_over round;
    check "of the main domain" mine;
    expect_collected "deleted by the successor" w;
    delete_all mine
  done;
  if creations_granted () > 0 then fail "boxroot_create succeeded on the thread of a domain that has ended"

(* The domain of a thread ends when the library is not in use: before the first use, or between teardown and the next
   set-up. Later a domain of the same identity makes roots, which the thread deletes, while the domain goes on with
   others. `spawned`: so many domains ran before, so that identities and numbers differ. *)
let ended_unseen ~how ~again ~spawned () =
  if again then begin delete (create_or_fail "first use"); teardown () end;
  for _ = 1 to spawned do Par.join (Par.spawn ignore) done;
  Par.join (Par.spawn (fun () -> late_act how));
  wait_about 1;
  if again && not (setup ()) then fail "boxroot_setup failed";
  let w = ref (Weak.create 1) and rounds = scale 30 in
  Par.join (Par.spawn (fun () ->
      let n = 20_000 in
      let w', doomed = watched n in
      let own = make n in
      w := w';
      late_roots doomed;
      may_act ();
      for _ = 1 to rounds do
        for i = 0 to n - 1 do
          delete own.(i);
          own.(i) <- create_or_fail (text i);
          if i land 7 = 0 then own.(i) <- modify own.(i) (text i)
        done;
        if creations_granted () > 0 then fail "boxroot_create succeeded on the thread of a domain that has ended";
        check "of the domain that came next" own
      done;
      delete_all own));
  wait_over 1;
  if creations_granted () > 0 then fail "boxroot_create succeeded on the thread of a domain that has ended";
  expect_collected "deleted by the thread of an ended domain" !w

(* The first use of the library is that thread's. *)
let first_use_unseen how () =
  Par.join (Par.spawn (fun () -> late_act how));
  wait_about 1;
  may_act ();
  wait_over 1;
  if creations_granted () > 0 then fail "boxroot_create succeeded on the thread of a domain that has ended";
  if status () <> not_setup then fail "the status is %d after a creation that failed" (status ());
  delete_all (make 1000)

(* --- memory follows the live roots -------------------------------------------------------------------------------- *)

let enough_in_a_pool () = if (not (is_rival ())) && pool_capacity () < 1000 then skip "pools of few roots"

let domains_that_come_and_go () =
  if not Par.multicore then skip "needs OCaml 5";
  enough_in_a_pool ();
  if is_sanitized () then skip "memory says little under a sanitizer";
  if is_checked () then skip "the checked build keeps an account of its own";
  let rounds = max 50 (scale 300) and each = 40_000 in
  let one () =
    let left = ref none in
    Par.join
      (Par.spawn (fun () ->
           let roots = Array.init each (fun i -> create_or_fail i) in
           Array.iteri (fun i r -> if i <> each / 2 then delete r else left := r) roots));
    !left
  in
  ignore (one ());
  Gc.compact ();
  let resident = resident_kb () and reserved = bytes_reserved () in
  let kept = Array.init rounds (fun _ -> one ()) in
  for _ = 1 to 3 do Gc.full_major () done;
  Gc.compact ();
  let grown = resident_kb () - resident and pools = (rounds + 10) * 16
  and more = (bytes_reserved () - reserved) / 1024 in
  Printf.printf "%d domains: resident +%d KB, address space +%d KB\n" rounds grown more;
  if grown > pools + 8192 then fail "%d KB more are resident for %d roots in as many pools" grown rounds;
  if (not (is_rival ())) && more > (pools * 2) + 8192 then fail "%d KB more of address space for %d roots" more rounds;
  Array.iter (fun r -> if (get r : int) <> each / 2 then fail "a root lost its value") kept;
  delete_all kept

let compaction_gives_back () =
  enough_in_a_pool ();
  if is_sanitized () then skip "memory says little under a sanitizer";
  if is_checked () then skip "the checked build keeps an account of its own";
  let n = 1_000_000 in
  delete_all (Array.init 1000 (fun i -> create_or_fail i));
  let big = Array.make n none in
  Root.compact ();
  let before = resident_kb () in
  for i = 0 to n - 1 do big.(i) <- create_or_fail i done;
  let full = resident_kb () - before in
  for i = 0 to n - 1 do delete big.(i) done;
  Root.compact ();
  (* where Gc.compact is no more than a major cycle it takes three *)
  let old = match String.sub Sys.ocaml_version 0 3 with "5.0" | "5.1" -> true | _ -> false in
  if old || is_conservative () then Gc.full_major ();
  let rest = resident_kb () - before in
  Printf.printf "%d roots: +%d KB; after they were deleted, and a compaction: +%d KB\n" n full rest;
  if rest > 1500 then fail "%d KB of %d are still there" rest full

(* Collections that the program asks for go through roots as they go through an array: the collector must not take the
   work for a lead over the program, and rest until that has allocated as much. *)
let forced_collections () =
  enough_in_a_pool ();
  if is_checked () || is_sanitized () then skip "takes long with checks";
  if not (is_paced ()) then skip "only where the library keeps the pace";
  let n = 400_000 and window = Array.make 10_000 [] in
  let cycles () = (Gc.quick_stat ()).major_collections in
  let words_for_cycles k =
    let promoted () = (Gc.quick_stat ()).promoted_words in
    let last = cycles () + k and start = promoted () and i = ref 0 in
    while cycles () < last do
      for _ = 1 to 1000 do
        incr i;
        window.(!i * 7919 mod 10_000) <- [ !i; !i; !i ]
      done
    done;
    promoted () -. start
  in
  let measure () =
    ignore (words_for_cycles 5);
    for _ = 1 to 4 do Gc.full_major () done;
    words_for_cycles 3
  in
  let held = Array.init n (fun i -> ref i) in
  let in_array = measure () in
  let roots = Array.init n (fun i -> create_or_fail held.(i)) in
  Array.iteri (fun i _ -> held.(i) <- ref 0) held;
  let in_roots = measure () in
  Printf.printf "promoted in three cycles after forced collections: %.0f words beside an array, %.0f beside roots\n"
    in_array in_roots;
  (* where the marker reads most of the roots it counts their slots as well *)
  if in_roots > if marks_late then 1.25 *. in_array else in_array then
    fail "the collector rests after forced collections: %.0f words, beside an array %.0f" in_roots in_array;
  Array.iteri (fun i r -> if !(get r : int ref) <> i then fail "a root lost its value") roots;
  delete_all roots

(* In the checked build the last slots to be deleted are in quarantine, and keep their pools: let that be few pools. *)
let expect_few_pools () =
  if is_checked () then begin
    for _ = 1 to 2 do
      delete_all (Array.init 5000 (fun i -> create_or_fail i));
      Gc.full_major ()
    done
  end;
  let most = if is_checked () then 12 else 4 in
  if pools_in_use () > most then fail "%d pools are in use without a root" (pools_in_use ())

(* --- a flood of remote deletions ---------------------------------------------------------------------------------- *)

let flood ~keep () =
  if is_rival () then skip "0.4.0 does not count its deletions";
  let n = 600_000 in
  let n = if pool_capacity () < 1000 then n / 20 else n in
  Gc.full_major ();
  let roots = Array.init n (fun i -> create_or_fail i) in
  Gc.full_major ();
  let before = deleted () in
  let k = delete_on_thread roots keep in
  let steps = ref 0 and largest = ref 0 and last = ref before in
  while deleted () - before < k && !steps < 2000 do
    Gc.minor ();
    incr steps;
    largest := max !largest (deleted () - !last);
    last := deleted ();
    if !steps land 15 = 0 then Gc.full_major ()
  done;
  Printf.printf "%d deletions carried out in %d steps, %d at most\n" (deleted () - before) !steps !largest;
  if deleted () - before < k then fail "%d of %d deletions were carried out" (deleted () - before) k;
  if keep > 0 && k > 400_000 && !largest > 250_000 then fail "%d deletions were carried out in one pause" !largest;
  Array.iteri (fun i r ->
    if keep > 0 && i mod keep = 0 then begin if (get r : int) <> i then fail "root %d lost its value" i;
      delete r end) roots;
  for _ = 1 to 4 do Gc.full_major () done;
  expect_few_pools ()

(* --- another life ------------------------------------------------------------------------------------------------- *)

let stale_deletions () =
  for _ = 1 to 5 do
    let roots = make 5000 in
    ignore (delete_on_thread roots 2);
    teardown ();
    if not (setup ()) then fail "boxroot_setup failed";
    let w, again = watched 5000 in
    Gc.full_major ();
    ignore (delete_on_thread again 0);
    expect_collected "deleted after a teardown with pending deletions" w;
    expect_few_pools ()
  done

let handles () =
  if is_rival () then skip "0.4.0 has no handles";
  List.iter (fun n -> ignore (by_handle (text n) n)) [ 1; 10; 1000; 20_000 ];
  handle_without_lock ();
  if Par.multicore then Par.join (Par.spawn (fun () -> ignore (by_handle (text 5) 5000)));
  ignore (by_handle (text 1) 5000)

let by_address () =
  if is_rival () then skip "0.4.0 has no handles";
  let said = error_string () in
  if said <> "no call of this thread has failed" then fail "boxroot_error_string before any failure: %s" said;
  by_address (text 1);
  Gc.full_major ();
  by_address (text 2)

let ocaml5 f () = if Par.multicore then f () else skip "needs OCaml 5"

let () =
  main
    [ ("ended-thread-key", ocaml5 (ended_thread 0)); ("ended-thread-cxx", ocaml5 (ended_thread 1));
      ("ended-thread-own-key", ocaml5 (ended_thread_own 0)); ("ended-thread-own-cxx", ocaml5 (ended_thread_own 1));
      ("ended-thread-and-successor-key", ocaml5 (ended_thread_and_successor 0));
      ("ended-thread-and-successor-cxx", ocaml5 (ended_thread_and_successor 1));
      ("ended-unseen-key", ocaml5 (ended_unseen ~how:0 ~again:false ~spawned:0));
      ("ended-unseen-cxx", ocaml5 (ended_unseen ~how:1 ~again:false ~spawned:0));
      ("ended-unseen-later", ocaml5 (ended_unseen ~how:1 ~again:false ~spawned:3));
      ("ended-unseen-torn-down-key", ocaml5 (ended_unseen ~how:0 ~again:true ~spawned:0));
      ("ended-unseen-torn-down-cxx", ocaml5 (ended_unseen ~how:1 ~again:true ~spawned:2));
      ("first-use-unseen-key", ocaml5 (first_use_unseen 0)); ("first-use-unseen-cxx", ocaml5 (first_use_unseen 1));
      ("domains-that-come-and-go", domains_that_come_and_go); ("compaction-gives-back", compaction_gives_back);
      ("forced-collections", forced_collections);
      ("flood", flood ~keep:0); ("flood-of-most", flood ~keep:1999); ("flood-of-half", flood ~keep:2);
      ("stale-deletions", stale_deletions); ("handles", handles); ("by-address", by_address) ]
