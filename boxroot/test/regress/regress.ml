(* SPDX-License-Identifier: MIT *)
(* One test for each failure that was found in version 0.4.0 by running it, and for the faults that a design like ours could have in
   their place. README.md has the table of which of them fail on 0.4.0. *)

open Root

external holders : int -> unit = "r_holders"
external holder : int -> Obj.t = "r_holder"
external give : int -> Root.t -> bool = "r_give" [@@noalloc]
external take : int -> Root.t = "r_take" [@@noalloc]
external deleted_by_finalisers : unit -> int = "r_deleted_by_finalisers"
external modify_in_finalisers : bool -> unit = "r_modify_in_finalisers" [@@noalloc]
external misuse : string -> Root.t -> unit = "r_misuse"
external arm : int -> int -> unit = "o_arm" [@@noalloc]
external disarm : unit -> unit = "o_disarm" [@@noalloc]
external rearm : int -> unit = "o_rearm" [@@noalloc]
external failures : unit -> int = "o_failures"
external kernel : int -> bool -> unit = "o_kernel" [@@noalloc]
external given : unit -> int = "o_given" [@@noalloc]
external expect_enomem : unit -> unit = "o_expect_enomem" [@@noalloc]

let text i = "value " ^ string_of_int i
let make n = Array.init n (fun i -> create_or_fail (text i))

let is_text r i =
  let v : Obj.t = get r in
  Obj.is_block v && Obj.tag v = Obj.string_tag && String.equal (Obj.obj v) (text i)

let check what roots =
  let bad = ref 0 in
  Array.iteri (fun i r -> if r <> none && not (is_text r i) then incr bad) roots;
  if !bad > 0 then fail "%s: %d of %d roots lost their values" what !bad (Array.length roots)

let delete_all roots = Array.iter (fun r -> if r <> none then delete r) roots

let churn n =
  for i = 1 to n do
    ignore (Sys.opaque_identity (text i))
  done

let in_domain f =
  let result = ref None in
  Par.join (Par.spawn (fun () -> result := Some (f ())));
  match !result with Some x -> x | None -> fail "a domain gave no result"

(* --- 1. the end of a domain --------------------------------------------------------------------------------------------------------- *)

let domain_exit_idle_main () =
  for _ = 1 to 10 do
    let roots = in_domain (fun () -> make 500) in
    Gc.full_major ();
    churn 10_000;
    Gc.full_major ();
    check "of a domain that ended" roots
  done

let domain_exit_used_main () =
  let mine = make 500 in
  for round = 1 to 30 do
    let roots =
      in_domain (fun () ->
          let roots = make 500 in
          if round land 1 = 0 then Gc.minor ();
          if round land 2 = 0 then ignore (Gc.major_slice 100);
          roots)
    in
    if round land 4 = 0 then Gc.minor () else Gc.full_major ();
    churn 10_000;
    check "of a domain that ended" roots;
    check "main" mine;
    delete_all roots
  done

(* The domain ends while its pools are in the hands of the marker, and its roots are deleted right after, their values kept. *)
let domain_exit_mid_cycle () =
  for round = 0 to scale 60 do
    let roots =
      in_domain (fun () ->
          let roots = make 300 in
          Gc.full_major ();
          for _ = 1 to round mod 10 do
            ignore (Gc.major_slice (1 + (round * 5)))
          done;
          Array.iteri (fun i r -> if i mod 3 = 0 then begin delete r; roots.(i) <- create_or_fail (text i) end) roots;
          roots)
    in
    let values = Array.make 300 "" in
    for i = 0 to 299 do
      values.(i) <- get roots.(i);
      match i land 3 with 0 -> delete roots.(i); roots.(i) <- none | 1 -> roots.(i) <- modify roots.(i) (text i) | _ -> ()
    done;
    if round land 1 = 0 then Gc.major () else Gc.full_major ();
    churn 3000;
    check "of a domain that ended in mid-cycle" roots;
    Array.iteri (fun i s -> if s <> text i then fail "round %d: a value was lost with its root: %S" round s) values;
    delete_all roots
  done

let finaliser_roots = Atomic.make []

(* Domains that make and delete roots to the very last: in exit functions, and in the finalisers that run when they end. *)
let domain_exit_last_words () =
  for round = 1 to scale 40 do
    holders 100;
    let roots =
      in_domain (fun () ->
          let roots = make 200 in
          let doomed = ref (List.init 100 holder) in
          Par.at_domain_exit (fun () ->
              for i = 0 to 99 do
                delete roots.(i);
                roots.(i) <- create_or_fail (text i)
              done);
          Gc.full_major ();
          ignore (Sys.opaque_identity !doomed);
          for i = 0 to 99 do
            if not (give i (create_or_fail (text i))) then fail "a block in use was finalised"
          done;
          doomed := [];
          Gc.finalise
            (fun _ -> Atomic.set finaliser_roots (create_or_fail (text 0) :: Atomic.get finaliser_roots))
            (Sys.opaque_identity (ref 0));
          if round land 1 = 0 then ignore (Gc.major_slice 50);
          roots)
    in
    Gc.full_major ();
    churn 3000;
    Gc.full_major ();
    check "last words" roots;
    delete_all roots;
    List.iter (fun r -> if not (is_text r 0) then fail "a finaliser's root lost its value") (Atomic.get finaliser_roots);
    List.iter delete (Atomic.get finaliser_roots);
    Atomic.set finaliser_roots [];
    for i = 0 to 99 do
      let r = take i in
      if r <> none then begin
        if not (is_text r i) then fail "the root of a custom block lost its value";
        delete r
      end
    done
  done

(* Rounds of spawn and join that leave roots behind; those of ten rounds ago are deleted. Memory must stay bounded. *)
let churn_domains ~main_uses () =
  let rounds = max 240 (scale 1000) and warm_up = 160 and each = 40 in
  let left = Queue.create () in
  let mine = if main_uses then make 100 else [||] in
  let early = ref 0 and early_reserved = ref 0 in
  for round = 1 to rounds do
    let old = if Queue.length left >= 10 then Queue.pop left else [||] in
    if main_uses && round land 1 = 0 then delete_all old;
    let roots =
      in_domain (fun () ->
          if not (main_uses && round land 1 = 0) then begin
            check "inherited" old;
            delete_all old
          end;
          let roots = make each in
          if round mod 3 = 0 then Gc.minor ();
          if round mod 7 = 0 then ignore (Gc.major_slice 30);
          roots)
    in
    Queue.push roots left;
    if round mod 50 = 0 then begin
      Gc.full_major ();
      Queue.iter (check "left behind") left;
      check "main" mine
    end;
    if round = warm_up then begin
      Root.compact ();
      early := resident_kb ();
      early_reserved := bytes_reserved ()
    end
  done;
  Gc.full_major ();
  Queue.iter (check "left behind") left;
  check "main" mine;
  Root.compact ();
  Queue.iter (check "left behind") left;
  if (not (is_sanitized ())) && resident_kb () > !early + 6000 then
    fail "resident memory grew from %d KB after %d rounds to %d KB after %d" !early warm_up (resident_kb ()) rounds;
  if (not (is_rival ())) && bytes_reserved () > !early_reserved + (16 * 1024 * 1024) then
    fail "the library's memory grew from %d KB to %d KB" (!early_reserved / 1024) (bytes_reserved () / 1024)

(* Several domains at a time, some of which end while others collect. *)
let churn_together () =
  let rounds = scale 40 in
  for round = 1 to rounds do
    let results = Array.make 4 [||] in
    let ds =
      List.init 4 (fun d ->
          Par.spawn (fun () ->
              let roots = make (100 + (50 * d)) in
              if (round + d) land 1 = 0 then Gc.minor ();
              if (round + d) land 3 = 0 then Gc.full_major ();
              check "own" roots;
              results.(d) <- roots))
    in
    List.iter Par.join ds;
    if round land 1 = 0 then Gc.full_major ();
    Array.iter (check "left behind together") results;
    Array.iter delete_all results
  done

(* Roots of an ended domain, which another domain has taken over in this cycle, are deleted after the marks of the cycle have become void
   and before the next one has begun: darkening their values then would count a marker that never ends. *)
let deleted_between_cycles () =
  if not Par.multicore then skip "needs OCaml 5";
  let mine = make 10 in
  for round = 1 to 5 do
    let roots = in_domain (fun () -> let roots = make 600 in Gc.minor (); roots) in
    Gc.minor ();
    Hooks.delete_between_cycles (Array.sub roots 300 300);
    Hooks.verify_heap true;
    Gc.major ();
    Hooks.verify_heap false;
    let left = Hooks.undeleted () in
    if left > 0 then fail "round %d: %d roots were not deleted: nothing was scanned" round left;
    Gc.full_major ();
    Root.compact ();
    churn 10_000;
    check "left" (Array.sub roots 0 300);
    check "main" mine;
    delete_all (Array.sub roots 0 300)
  done

(* --- 2. deletion in finalisers, in the middle of a scan --------------------------------------------------------------------------------- *)

(* Custom blocks grow old and die; C code, which still has their addresses, gives them roots of the young generation; the minor
   collection promotes the values, promotion sweeps blocks of the same size, sweeping finalises, and the finalisers delete roots of
   the pool that is being scanned. *)
let finaliser_deletes ~major () =
  let rounds = scale 80 in
  for round = 1 to rounds do
    let n = if round land 1 = 0 then 3000 else 300 + (round * 997 mod 1700) in
    holders n;
    (* the blocks share their pages with others, which die first: only pages with room are swept in search of it *)
    let doomed = Array.init (2 * n) (fun i -> if i land 1 = 0 then holder (i / 2) else Obj.repr (text i)) in
    Gc.minor ();
    Array.iteri (fun i _ -> if i land 1 = 1 then doomed.(i) <- Obj.repr 0) doomed;
    Gc.full_major ();
    ignore (Sys.opaque_identity doomed);
    Array.fill doomed 0 (2 * n) (Obj.repr 0);
    (* no longer marked; dead in the cycle after; not swept yet at the start of the next *)
    Gc.major ();
    Gc.major ();
    if round land 3 = 3 then ignore (Gc.major_slice 1);
    let kept = Array.make n none in
    let given = Array.make n none in
    for i = 0 to n - 1 do
      kept.(i) <- create_or_fail (text i);
      given.(i) <- create_or_fail (text i);
      if not (give i given.(i)) then begin
        delete given.(i);
        given.(i) <- none
      end
    done;
    (match round mod 3 with
    | 0 -> Gc.minor ()
    | 1 -> churn 100_000
    | _ -> if major then ignore (Gc.major_slice (round * 7)) else Gc.minor ());
    check "kept" kept;
    if major then begin
      Gc.full_major ();
      check "kept" kept
    end;
    for i = 0 to n - 1 do
      let r = take i in
      if r <> none then begin
        if r <> given.(i) then fail "a holder's root changed";
        if not (is_text r i) then fail "round %d: the root of a custom block in use lost its value" round;
        delete r
      end
    done;
    delete_all kept
  done;
  if Par.multicore && deleted_by_finalisers () < 100 then fail "finalisers deleted only %d roots" (deleted_by_finalisers ())

(* Blocks that die young: their finalisers run at the end of the minor collection that scans the pool their roots are in. *)
let finaliser_young () =
  if Sys.ocaml_version = "5.1.0" then skip "5.1.0 promotes dead custom blocks: no finaliser runs in a minor collection";
  let n = 300 in
  for round = 1 to scale 300 do
    holders n;
    let kept = Array.make n none in
    for i = 0 to n - 1 do
      ignore (Sys.opaque_identity (holder i));
      kept.(i) <- create_or_fail (text i);
      ignore (give i (create_or_fail (text i)))
    done;
    if round land 1 = 0 then Gc.minor () else churn 2000;
    check "kept" kept;
    delete_all kept;
    for i = 0 to n - 1 do
      let r = take i in
      if r <> none then delete r
    done
  done;
  if deleted_by_finalisers () = 0 then fail "no finaliser ran"

(* A pointer to the second function of a closure. Its header is a word in the middle of the block. *)
let infix i : Obj.t =
  let s = Sys.opaque_identity (text i) in
  let rec f n = if n = 0 then s else g (n - 1) and g n = if n = 0 then s ^ "!" else f (n - 1) in
  ignore (Sys.opaque_identity (Obj.repr f));
  Obj.repr g

let is_infix r i =
  let v : Obj.t = get r in
  Obj.is_block v && Obj.tag v = Obj.infix_tag && (Obj.obj v : int -> string) 1 = text i

(* A collection that moves a closure allocates its new place and writes its address into the root at once, and copies what is inside later, when
   all roots have been visited. In between, the header before an infix pointer is whatever an earlier block left there. As in the tests above,
   finalisers modify roots just then, and delete them, during the visit or (`later`) after it; the marker is under way, so their values are
   darkened. The
   earlier blocks are tuples that hold a number that looks like the header of a very large block, unmarked (in one of three cycles). *)
let infix_while_moving ~later () =
  modify_in_finalisers true;
  let ballast = make ((3 * pool_capacity ()) + 100) in
  Gc.full_major ();
  let bait i = Obj.repr (i, i, (1 lsl 49) lor (i mod 3 lsl 7), i, i, i) in
  let n = 100 in
  for round = 1 to scale 60 do
    holders n;
    let doomed = Array.init (2 * n) (fun i -> if i land 1 = 0 then holder (i / 2) else Obj.repr (text i)) in
    let baits = Array.init (8 * n) bait in
    Gc.minor ();
    Array.iteri (fun i _ -> if i land 1 = 1 then doomed.(i) <- Obj.repr 0) doomed;
    Array.iteri (fun i _ -> if i land 1 = 1 then baits.(i) <- Obj.repr 0) baits;
    Gc.full_major ();
    ignore (Sys.opaque_identity (doomed, baits));
    Array.fill doomed 0 (2 * n) (Obj.repr 0);
    Array.fill baits 0 (8 * n) (Obj.repr 0);
    Gc.major ();
    Gc.major ();
    let given = Array.init n (fun i -> create_or_fail (infix i)) in
    (* what is within the value of a root is moved after the visit *)
    let more = Array.init n (fun i -> create_or_fail (if later then Obj.repr (Some (text i)) else Obj.repr (text i))) in
    Array.iteri (fun i r -> if not (give i r) then begin delete r; given.(i) <- none end) given;
    Gc.minor ();
    Gc.major ();
    if later then Array.iteri (fun i r -> if (get r : string option) <> Some (text i) then fail "a value was lost") more else check "more" more;
    for i = 0 to n - 1 do
      let r = take i in
      if r <> none then begin
        if not (is_infix r i) then fail "round %d: a closure was lost" round;
        delete r
      end
    done;
    delete_all more
  done;
  check "ballast" ballast;
  if Par.multicore && deleted_by_finalisers () < 100 then fail "finalisers deleted only %d roots" (deleted_by_finalisers ())

(* --- 3. no memory ------------------------------------------------------------------------------------------------------------------------ *)

(* A program in which the n-th request for memory fails (mode 1), or all from the n-th on until the failure has been seen (mode 2).
   Requests made by the GC's hooks can fail too when `always`. The number of failures. *)
let oom_program ~mode ~always ~domains n =
  let size = min 5000 ((3 * pool_capacity ()) + 10) in
  arm mode n;
  if not always then disarm ();
  let lasting = ref true in
  let attempt what f ok =
    let rec go tries =
      if tries > 3 then fail "%s fails for ever" what;
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

(* --- 4. memory is used again, and given back ---------------------------------------------------------------------------------------------------- *)

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
  if (not (is_rival ())) && pools_in_use () > start * 9 / 4 then fail "%d pools instead of %d for the same number of roots" (pools_in_use ()) start;
  (* in the checked build each pool in use has an account of seven times its size, which stays *)
  if not (is_sanitized () || is_checked ()) && resident_kb () > start_kb + (pools * 16 * 5 / 4) + 3000 then
    fail "resident memory grew from %d to %d KB for the same number of roots" start_kb (resident_kb ());
  Array.iteri (fun i r -> if get r <> i then fail "root %d changed" i) roots

(* The same between two minor collections, in two waves, at several points of the cycle: pools that have lost most of their roots are
   found, not only those that had lost them by the time of the first search. *)
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
  if used () > start + (pools * 5 / 4) then fail "%d pools more for the same number of roots as %d held" (used () - start) pools

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
  if (not (is_rival ())) && pools_in_use () > (!peak * 3 / 2) + 4 then fail "pools in use grew from %d to %d" !peak (pools_in_use ())

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
    fail "resident memory was %d KB, %d KB with %d roots of an ended domain, and still is %d KB without" start full n (resident_kb ());
  delete in_main

(* --- the deletion barrier: values whose roots end while the marker is on its way ------------------------------------------------------------------- *)

let barrier way () =
  let limit = scale 160 in
  for round = 0 to limit do
    (* a domain with one or two pools has its roots visited at once, and needs no barrier: so, at times, more roots *)
    let n = if round mod 16 = 3 then 6000 else 600 in
    let roots = make n in
    Gc.full_major ();
    if round land 1 = 0 then Gc.full_major ();
    for _ = 1 to round mod 8 do
      ignore (Gc.major_slice (1 + (round * 3)))
    done;
    (* a block that is old and marked, into which the values move; they are reachable from nowhere else *)
    let values = Array.make n "" in
    for i = 0 to n - 1 do
      let r = roots.(i) in
      values.(i) <- get r;
      roots.(i) <- way i r
    done;
    delete_elsewhere_done ();
    for _ = 1 to round mod 5 do
      ignore (Gc.major_slice (round * 11))
    done;
    if round land 2 = 0 then Gc.major () else Gc.full_major ();
    churn 1500;
    Array.iteri (fun i s -> if not (String.equal s (text i)) then fail "round %d: the value of root %d was lost: %S" round i s) values;
    check "left" roots;
    delete_all roots
  done

let ended r = ignore r; none
let barrier_delete = barrier (fun _ r -> delete r; ended r)
let barrier_modify = barrier (fun i r -> modify r (text i))
let barrier_modify_immediate = barrier (fun _ r -> delete (modify r 0); none)
let barrier_nolock = barrier (fun _ r -> delete_nolock r; ended r)
let barrier_elsewhere = barrier (fun _ r -> delete_elsewhere r; ended r)
let barrier_exchange = barrier (fun i r -> let fresh = create_or_fail (text i) in delete r; fresh)
let barrier_mixed =
  barrier (fun i r ->
      match i mod 7 with
      | 0 -> delete r; none
      | 1 -> modify r (text i)
      | 2 -> delete_nolock r; none
      | 3 -> delete_elsewhere r; none
      | 4 -> delete r; create_or_fail (text i)
      | 5 -> modify (modify r 0) (text i)
      | _ -> r)

(* Another domain takes the values out of this one's roots and ends them. *)
let barrier_other_domain () =
  let n = 400 in
  for round = 0 to scale 60 do
    let roots = make n in
    Gc.full_major ();
    let values = Array.make n "" in
    for _ = 1 to round mod 6 do
      ignore (Gc.major_slice (1 + (round * 3)))
    done;
    in_domain (fun () ->
        for i = 0 to n - 1 do
          values.(i) <- get roots.(i);
          if i land 1 = 0 then delete roots.(i) else roots.(i) <- modify roots.(i) (text i)
        done);
    if round land 1 = 0 then Gc.major () else Gc.full_major ();
    churn 1500;
    Array.iteri (fun i s -> if not (String.equal s (text i)) then fail "round %d: the value of root %d was lost: %S" round i s) values;
    Array.iteri (fun i r -> if i land 1 = 1 then (if not (is_text r i) then fail "modified root %d" i; delete r)) roots
  done

(* --- 6. misuse ----------------------------------------------------------------------------------------------------------------------------------------- *)

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
    roots.(4)
  in
  let live () = (make 10).(4) in
  [ ("get-after-delete", "use after delete", "get", dead); ("get-ref-after-delete", "use after delete", "get_ref", dead);
    ("modify-after-delete", "use after delete", "modify", dead); ("old-get-after-delete", "use after delete", "get", old_dead);
    ("get-after-delete-nolock", "use after delete", "get", without_lock_dead); ("double-delete", "double delete", "delete", dead);
    ("old-double-delete", "double delete", "delete", old_dead); ("double-delete-nolock", "double delete", "delete", without_lock_dead);
    ("foreign-get", "foreign pointer", "foreign get", live); ("foreign-delete", "foreign pointer", "foreign delete", live);
    ("foreign-modify", "foreign pointer", "foreign modify", live); ("heap-delete", "foreign pointer", "heap delete", live);
    ("stack-delete", "foreign pointer", "stack delete", live); ("inside-delete", "foreign pointer", "inside delete", live);
    ("header-delete", "foreign pointer", "header delete", live); ("null-delete", "foreign pointer", "null delete", live);
    ("null-get", "foreign pointer", "null get", live); ("delete-after-teardown", "use after teardown", "delete", torn);
    ("get-after-teardown", "use after teardown", "get", torn) ]

let misuse_tests = List.map (fun (name, fault, _, _) -> ("misuse-" ^ name, expect_fault name fault)) misuses

let misuse_doers =
  List.map (fun (name, _, what, prepare) -> ("do-" ^ name, fun () -> misuse what (prepare ()))) misuses

(* In a release build a program that has roots left after teardown, and uses them, is wrong but does not crash. *)
let misuse_after_teardown_release () =
  if is_checked () then skip "a fault in the checked build";
  let roots = make 1000 in
  Gc.minor ();
  let young = make 100 in
  teardown ();
  Array.iter (fun r -> ignore (Sys.opaque_identity (get_ref r))) roots;
  Array.iteri (fun i r -> if i land 1 = 0 then ignore (Sys.opaque_identity (deref (get_ref r) : Obj.t)) else delete r) roots;
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
      match round with 1 -> p mod 2 = 0 | 2 -> p mod 4 <> 3 | 3 -> p mod 20 <> 0 | 4 -> p > 2 | 5 -> p mod 8 > 3 | _ -> true
    in
    Array.iteri (fun i r -> if gone i then begin (if i land 1 = 0 then delete r else delete_nolock r); roots.(i) <- none end) roots;
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

(* --- 8. replaced blocking-section hooks (OCaml 4.14) --------------------------------------------------------------------------------------------------- *)

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
  let t = Thread.create (fun () -> nap 20_000; result := make 100; nap 10; delete_all (make 100)) () in
  nap 1000;
  Hooks.replace_blocking 0;
  Thread.join t;
  Gc.minor ();
  check "of a thread that slept" !result;
  check "first" first;
  ignore (eperm_blocking none);
  ignore (eperm_thread none)

let () =
  Root.main
    ([ ("domain-exit-idle-main", domain_exit_idle_main); ("domain-exit-used-main", domain_exit_used_main);
       ("domain-exit-mid-cycle", domain_exit_mid_cycle); ("domain-exit-last-words", domain_exit_last_words);
       ("deleted-between-cycles", deleted_between_cycles); ("churn-idle-main", churn_domains ~main_uses:false); ("churn-used-main", churn_domains ~main_uses:true); ("churn-together", churn_together);
       ("finaliser-deletes-in-minor", finaliser_deletes ~major:false); ("finaliser-deletes-in-major", finaliser_deletes ~major:true);
       ("finaliser-of-the-young", finaliser_young);
       ("infix-while-visited", infix_while_moving ~later:false); ("infix-after-visit", infix_while_moving ~later:true); ("no-memory-once", out_of_memory ~domains:false ~mode:1 ~always:false);
       ("no-memory-for-long", out_of_memory ~domains:false ~mode:2 ~always:false); ("no-memory-in-hooks", out_of_memory ~domains:false ~mode:1 ~always:true);
       ("no-memory-in-hooks-for-long", out_of_memory ~domains:false ~mode:2 ~always:true);
       ("no-memory-for-domains", no_memory_for_domains); ("reuse", reuse); ("reuse-in-two-waves", reuse_in_two_waves);
       ("reuse-after-remote-deletion", reuse_after_remote_deletion); ("give-back-local", give_back_local); ("give-back-no-lock", give_back_nolock);
       ("give-back-elsewhere", give_back_elsewhere); ("give-back-other-domain", give_back_other_domain);
       ("give-back-ended-domain", give_back_ended_domain); ("barrier-delete", barrier_delete); ("barrier-modify", barrier_modify);
       ("barrier-modify-immediate", barrier_modify_immediate); ("barrier-no-lock", barrier_nolock); ("barrier-elsewhere", barrier_elsewhere);
       ("barrier-exchange", barrier_exchange); ("barrier-mixed", barrier_mixed); ("barrier-other-domain", barrier_other_domain);
       ("pages-of-4k", pages 4096 false); ("pages-of-16k", pages 16384 false); ("pages-of-64k", pages 65536 false); ("pages-of-2m", pages 2097152 false);
       ("pages-refused", pages 0 true); ("use-after-teardown", misuse_after_teardown_release); ("hooks-replaced", hooks_replaced);
       ("hooks-replaced-under-sleeper", hooks_replaced_under_sleeper) ]
    @ misuse_tests @ if Process.is_rerun then misuse_doers else [])
