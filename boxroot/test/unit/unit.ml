(* SPDX-License-Identifier: MIT *)
(* Unit tests of the documented behaviour, each in a process of its own. *)

open Root

external expect_tore_down : Root.t -> unit = "u_expect_tore_down"
external error_string : unit -> string = "u_error_string"
external printed_stats : unit -> string = "u_printed_stats"
external stat : string -> int = "u_stat"
external pool_bytes : unit -> int = "u_pool_bytes"
external registered_thread : int -> unit = "u_registered_thread"
external start_deleting : int -> unit = "u_start_deleting"
external stop_deleting : unit -> unit = "u_stop_deleting"
external cxx : int -> int = "u_cxx"
external compat_040 : 'a -> int = "u_compat_040"

let text i = string_of_int (i * 7919)
let make n = Array.init n (fun i -> create_or_fail (text i))

let check_text what r i =
  let s : Obj.t = get r in
  if not (Obj.is_block s && Obj.tag s = Obj.string_tag && (Obj.obj s : string) = text i) then fail "%s: root %d lost its value" what i

let check what roots = Array.iteri (fun i r -> if r <> none then check_text what r i) roots
let delete_all roots = Array.iter (fun r -> if r <> none then delete r) roots

let churn () =
  for i = 1 to 20_000 do
    ignore (Sys.opaque_identity (string_of_int i))
  done

(* OCaml 4.14 makes no minor collection when nothing was allocated. *)
let minor () =
  ignore (Sys.opaque_identity (ref 0));
  Gc.minor ()

let collect () =
  minor ();
  churn ();
  ignore (Gc.major_slice 1000);
  churn ();
  Gc.full_major ();
  churn ();
  Root.compact ()

(* --- the life of a root --------------------------------------------------------------------------------------------------------- *)

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
    if roots.(i) <> cell && collections () = before then fail "root %d moved more than once between two minor collections" i
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
    if Weak.check w i <> (i land 3 = 3) then fail "root %d: its value is %s" i (if i land 3 = 3 then "gone" else "kept alive after deletion")
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

(* --- errors ---------------------------------------------------------------------------------------------------------------------- *)

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

(* --- teardown ------------------------------------------------------------------------------------------------------------------------ *)

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
  if is_checked () then skip "a fault in the checked build";
  let roots = make 5000 in
  collect ();
  teardown ();
  Array.iteri (fun i r -> match i land 3 with 0 -> delete r | 1 -> delete_plain r | 2 -> delete_nolock r | _ -> delete_elsewhere r) roots;
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
  if resident_kb () > resident + 8000 then fail "resident memory grew from %d to %d KB over teardowns" resident (resident_kb ());
  if virtual_kb () > virt + 20_000 then fail "address space grew from %d to %d KB over teardowns" virt (virtual_kb ())

(* --- statistics ------------------------------------------------------------------------------------------------------------------------ *)

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
  if field "create_slow" > pools * 60 && not (is_checked ()) then fail "%d slow creations for %d pools" (field "create_slow") pools;
  let scans = field "minor_scans" in
  minor ();
  if field "minor_scans" <= scans then fail "a minor collection was not counted";
  (* pools are young once *)
  minor ();
  let slots = field "minor_slots" in
  for _ = 1 to 10 do minor () done;
  if field "minor_slots" - slots > 10 * 2 * capacity then fail "minor collections look at old roots: %d slots" (field "minor_slots" - slots);
  let starts = field "major_starts" + field "other_scans" in
  Gc.full_major ();
  if field "major_starts" + field "other_scans" <= starts then fail "a major collection was not counted";
  if field "roots_last_cycle" < n && field "major_starts" > 0 then fail "%d roots at the last cycle, of %d" (field "roots_last_cycle") n;
  let remote = field "delete_remote" in
  for i = 0 to (n / 2) - 1 do delete_nolock roots.(i) done;
  Gc.full_major ();
  if field "delete_remote" - remote < n / 2 then fail "%d of %d deletions without the lock were counted" (field "delete_remote" - remote) (n / 2);
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

(* --- whoever comes first ------------------------------------------------------------------------------------------------------------------ *)

let use what =
  let roots = make 700 in
  collect ();
  check what roots;
  Array.iteri (fun i r -> if i land 1 = 0 then (delete r; roots.(i) <- none)) roots;
  roots

let first_is_a_domain () =
  let roots = ref [||] in
  Par.join (Par.spawn (fun () -> roots := use "in the first domain"));
  collect ();
  check "of a domain that ended" !roots;
  let mine = use "in the main domain" in
  delete_all mine;
  delete_all !roots

let first_is_a_thread () =
  let roots = ref [||] in
  let other = Thread.create (fun () -> for _ = 1 to 50 do churn (); Thread.yield () done) () in
  Thread.join (Thread.create (fun () -> roots := use "in the first thread") ());
  collect ();
  check "of a thread that ended" !roots;
  let mine = use "in the main thread" in
  Thread.join other;
  delete_all mine;
  delete_all !roots

let first_is_a_thread_of_c () =
  ignore (Thread.create ignore ());
  registered_thread 1;
  let mine = use "in the main thread" in
  registered_thread 3;
  check "of the main thread" mine;
  delete_all mine

let threads_before_first_use () =
  (* threads that wait, run and sleep while the library is being set up *)
  let go = Atomic.make false and bad = Atomic.make 0 in
  let worker i () =
    while not (Atomic.get go) do
      if i land 1 = 0 then Thread.yield () else nap 100
    done;
    let mine = ref [||] in
    for _ = 1 to 10 do
      delete_all !mine;
      mine := make 50;
      if i land 2 = 0 then nap 10 else Thread.yield ();
      minor ();
      Array.iteri (fun i r -> if (get r : string) <> text i then Atomic.incr bad) !mine
    done;
    delete_all !mine
  in
  let ts = List.init 6 (fun i -> Thread.create (worker i) ()) in
  Thread.yield ();
  let mine = make 10 in
  Atomic.set go true;
  nap 1000;
  ignore (eperm_blocking none);
  ignore (eperm_thread none);
  List.iter Thread.join ts;
  if Atomic.get bad > 0 then fail "%d roots of threads lost their values" (Atomic.get bad);
  check "main" mine;
  ignore (eperm_blocking none)

let registered () =
  ignore (Thread.create ignore ());
  let mine = make 100 in
  let stop = Atomic.make false in
  let t = Thread.create (fun () -> while not (Atomic.get stop) do delete_all (make 100); Thread.yield () done) () in
  registered_thread (scale 100);
  Atomic.set stop true;
  Thread.join t;
  Gc.full_major ();
  check "main" mine

(* --- fork ------------------------------------------------------------------------------------------------------------------------------------- *)

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
      (try f ()
       with e ->
         prerr_endline ("in the child: " ^ Printexc.to_string e);
         exit_now 1);
      exit_now 0
  | pid ->
      let deadline = Unix.gettimeofday () +. 30. in
      let rec wait () =
        match Unix.waitpid [ Unix.WNOHANG ] pid with
        | 0, _ ->
            if Unix.gettimeofday () > deadline then begin
              Unix.kill pid Sys.sigkill;
              fail "a forked process hangs"
            end;
            Unix.sleepf 0.002;
            wait ()
        | _, Unix.WEXITED 0 -> ()
        | _, Unix.WEXITED n -> fail "a forked process ended with code %d" n
        | _, (Unix.WSIGNALED n | Unix.WSTOPPED n) -> fail "a forked process ended with signal %d" n
      in
      wait ()

let fork () =
  let roots = make 3000 in
  minor ();
  ignore (Gc.major_slice 20);
  in_child (fun () ->
      check "in the child" roots;
      Array.iteri (fun i r -> if i land 1 = 0 then (delete r; roots.(i) <- none)) roots;
      collect ();
      check "in the child" roots;
      let more = use "in the child" in
      (* TSan takes the mutexes that the runtime makes anew in the child for those of the parent *)
      if Par.multicore && not (is_tsan ()) then Par.join (Par.spawn (fun () -> delete_all (use "in a domain of the child")));
      delete_all more;
      delete_all roots;
      teardown ());
  collect ();
  check "in the parent" roots;
  delete_all roots

let fork_while_deleting () =
  let mine = make 1000 in
  for round = 1 to scale 20 do
    start_deleting 20_000;
    if round land 1 = 0 then nap 10;
    in_child (fun () ->
        (* the thread that deletes is not here; it may have been in the middle of a deletion *)
        Gc.full_major ();
        let more = use "in the child" in
        Gc.full_major ();
        check "in the child" more;
        check "in the child" mine);
    stop_deleting ()
  done;
  Gc.full_major ();
  check "in the parent" mine

(* --- other libraries' hooks ---------------------------------------------------------------------------------------------------------------------- *)

let saw what (scans, begins, ends, _) =
  if scans = 0 || begins = 0 || ends = 0 then fail "%s: the other library's hooks saw %d scans, %d begins, %d ends" what scans begins ends

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
  Hooks.call_while_attaching (scale 2_000_000)

let teardown_under_other_hooks () =
  (* ours cannot be taken out from below; they must do nothing, and not be installed a second time on top of themselves *)
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

(* --- languages ------------------------------------------------------------------------------------------------------------------------------------ *)

let cplusplus () =
  match cxx (scale 50_000) with
  | -1 -> skip "no C++ compiler"
  | 0 -> Gc.full_major ()
  | n -> fail "C++: %d" n

let compat () =
  match compat_040 (Sys.opaque_identity (text 4)) with 0 -> () | n -> fail "a program written for 0.4.0 fails at point %d" n

(* --- domains ---------------------------------------------------------------------------------------------------------------------------------------- *)

(* Roots made here, modified and deleted there. *)
let passed_between_domains () =
  let n = 4000 in
  let roots = make n in
  minor ();
  let there () =
    check "in another domain" roots;
    for i = 0 to n - 1 do
      match i mod 4 with
      | _ when roots.(i) = none -> ()
      | 0 ->
          delete roots.(i);
          roots.(i) <- none
      | 1 -> roots.(i) <- modify roots.(i) (text i)
      | 2 ->
          delete_nolock roots.(i);
          roots.(i) <- create_or_fail (text i)
      | _ -> ()
    done;
    churn ();
    check "in another domain" roots
  in
  for _ = 1 to 4 do
    Par.join (Par.spawn there);
    collect ();
    check "back" roots
  done;
  delete_all roots

let domains_at_once () =
  let work d () =
    for round = 1 to scale 20 do
      let roots = make 500 in
      if (round + d) land 3 = 0 then Gc.major () else Gc.minor ();
      check "domains at once" roots;
      delete_all roots
    done
  in
  let ds = List.init 3 (fun d -> Par.spawn (work d)) in
  work 3 ();
  List.iter Par.join ds

(* --- collectors that are not known (BOXROOT_CONSERVATIVE) ---------------------------------------------------------------------------------------- *)

let conservative_only () = if not (is_conservative ()) then skip "about a library that takes the runtime for unknown"

(* A collector that keeps young values longer than one collection: values whose pools have been scanned are young still. *)
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

(* A collector like that of OCaml 5.5: while a domain shows its roots to it, other domains run already, and delete some. A value that they
   have read before is still theirs, although their own roots have been looked at. *)
let deleted_beside_the_scan () =
  conservative_only ();
  for _ = 1 to 3 do
    let roots = make 2000 and others = make 2000 in
    Gc.full_major ();
    Hooks.read_beside_the_scan roots;
    let waited = ref 0 in
    while not (Hooks.were_read roots) do
      incr waited;
      if !waited > 100_000 then fail "no major cycle begins";
      ignore (Gc.major_slice 10_000)
    done;
    for _ = 1 to 3 do collect (); check "read" roots; check "not read" others done;
    delete_all roots;
    delete_all others
  done

let () =
  Root.main
    [ ("basics", basics); ("modification", modification); ("liveness", liveness); ("nothing-allocated", nothing_allocated); ("many", many);
      ("eperm-before-setup", eperm_before_setup); ("eperm", eperm); ("eperm-setup", eperm_setup); ("statuses", statuses); ("no-setup-needed", no_setup_needed);
      ("teardown-then-setup", teardown_then_setup); ("teardown-mid-cycle", teardown_mid_cycle);
      ("teardown-deletes-nothing-later", teardown_deletes_nothing_later); ("teardown-gives-memory-back", teardown_gives_memory_back);
      ("statistics", statistics); ("statistics-printed", statistics_printed); ("first-is-a-domain", first_is_a_domain);
      ("first-is-a-thread", first_is_a_thread); ("first-is-a-thread-of-c", first_is_a_thread_of_c);
      ("threads-before-first-use", threads_before_first_use); ("registered-threads", registered); ("fork", fork);
      ("fork-while-deleting", fork_while_deleting); ("hooks-before", hooks_before); ("hooks-after", hooks_after);
      ("hooks-while-attaching", hooks_while_attaching); ("values-stay-young", values_stay_young);
      ("deleted-beside-the-scan", deleted_beside_the_scan);
      ("teardown-takes-hooks-out", teardown_takes_hooks_out); ("teardown-under-other-hooks", teardown_under_other_hooks);
      ("cplusplus", cplusplus); ("compat-0.4.0", compat); ("passed-between-domains", passed_between_domains); ("domains-at-once", domains_at_once) ]
