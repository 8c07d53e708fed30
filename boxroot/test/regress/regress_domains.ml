(* SPDX-License-Identifier: MIT *)
(* The end of a domain: what becomes of its roots. *)

open Root
open Regress_common

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

(* The domain ends while its pools are in the hands of the marker, and its roots are deleted right after, their values
   kept. *)
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
      match i land 3 with 0 -> delete roots.(i); roots.(i) <- none | 1 -> roots.(i) <- modify roots.(i) (text i)
        | _ -> ()
    done;
    if round land 1 = 0 then Gc.major () else Gc.full_major ();
    churn 3000;
    check "of a domain that ended in mid-cycle" roots;
    Array.iteri (fun i s -> if s <> text i then fail "round %d: a value was lost with its root: %S" round s) values;
    delete_all roots
  done

(* One domain after another makes the roots of three pools and deletes all but one. Those that stay share pools. *)
let domain_exit_leaves_one ~last () =
  if is_conservative () then skip "pools stay with the domain that adopted them";
  let n = 3 * pool_capacity () and rounds = 60 in
  let kept =
    Array.init rounds (fun round ->
        in_domain (fun () ->
            let roots = Array.init n (fun i -> create_or_fail (text (if i = 0 || i = n - 1 then round else i))) in
            let stays = if last then n - 1 else 0 in
            Array.iteri (fun i r -> if i <> stays then delete r) roots;
            if round mod 7 = 6 then ignore (Gc.major_slice 100);
            roots.(stays)))
  in
  check "left behind by domains" kept;
  let before = pools_in_use () in
  Gc.full_major ();
  check "left behind by domains, after a collection" kept;
  (* Without sharing, each domain leaves a pool. How many are shared is a matter of timing. *)
  let pools = max before (pools_in_use ()) and bound = max (rounds * 3 / 4) (2 * rounds / pool_capacity ()) in
  if pools > bound then fail "%d roots that domains left behind take %d pools, more than %d" rounds pools bound;
  delete_all kept

(* A domain with old pools that are nearly empty makes no roots, and others use the room; all of them delete and read
   what is theirs at the same time, whoever has the pool. *)
let sparse_pools_are_shared () =
  let n = min 20_000 (20 * pool_capacity ()) in
  for round = 1 to scale 12 do
    let mine = make n in
    Gc.full_major ();
    Array.iteri (fun i r -> if i mod 10 <> round mod 10 then begin delete r; mine.(i) <- none end) mine;
    let left =
      List.init 4 (fun k ->
          in_domain (fun () ->
              Gc.minor ();
              let roots = make (n / 4) in
              if (round + k) land 1 = 0 then ignore (Gc.major_slice (10 * k));
              check "main's, read by a domain" mine;
              Array.iteri (fun i r -> if i mod 5 <> k then begin delete r; roots.(i) <- none end) roots;
              roots))
    in
    let working = Par.spawn (fun () -> Gc.minor (); delete_all (make n)) in
    Array.iteri
      (fun i r ->
        if r <> none && i land 3 <> 3 then begin
          (match i land 3 with 0 -> delete r | 1 -> delete_nolock r | _ -> delete_elsewhere r);
          mine.(i) <- none
        end)
      mine;
    Par.join working;
    Array.iteri (fun i r -> if r <> none then mine.(i) <- modify r (text i)) mine;
    if round land 1 = 0 then Gc.full_major () else Gc.minor ();
    check "main's" mine;
    List.iter (check "of domains that ended") left;
    delete_all mine;
    List.iter delete_all left
  done

let finaliser_roots = Atomic.make []

(* Domains that make and delete roots to the very last: in exit functions, and in the finalisers that run when they
   end. *)
let domain_exit_last_words () =
  for round = 1 to scale 40 do
    holders 100;
    let roots =
      in_domain (fun () ->
          let roots = make 200 in
          let doomed = Sys.opaque_identity (ref (List.init 100 holder)) in (* in the heap: alive until it is cleared *)
          Par.at_domain_exit (fun () ->
              for i = 0 to 99 do
                delete roots.(i);
                roots.(i) <- create_or_fail (text i)
              done);
          Gc.full_major ();
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
    List.iter (fun r -> if not (is_text r 0) then fail "a finaliser's root lost its value")
      (Atomic.get finaliser_roots);
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

(* Roots of an ended domain, which another domain has taken over in this cycle, are deleted after the marks of the cycle
   have become void and before the next one has begun: darkening their values then would count a marker that never
   ends. *)
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
