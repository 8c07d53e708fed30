(* SPDX-License-Identifier: MIT *)
(* Deletion in finalisers, in the middle of a scan. *)

open Root
open Regress_common

(* Blocks that nothing reaches any more are not marked; dead in the cycle after; not swept yet at the start of the next.
   Where marking starts late they are not marked in this cycle. *)
let forget () =
  Gc.major ();
  if not marks_late then Gc.major ()

(* Custom blocks grow old and die; C code, which still has their addresses, gives them roots of the young generation;
   the minor collection promotes the values, promotion sweeps blocks of the same size, sweeping finalises, and the
   finalisers delete roots of the pool that is being scanned. *)
let finaliser_deletes ~major () =
  let rounds = scale 80 in
  for round = 1 to rounds do
    (* few now and then: with a small minor heap, minor collections sweep while many roots are being made *)
    let n = if round land 1 = 0 then 3000 else 300 + if round land 7 = 5 then 0 else round * 997 mod 1700 in
    holders n;
    (* the blocks share their pages with others, which die first: only pages with room are swept in search of it *)
    let doomed = Array.init (2 * n) (fun i -> if i land 1 = 0 then holder (i / 2) else Obj.repr (text i)) in
    Gc.minor ();
    Array.iteri (fun i _ -> if i land 1 = 1 then doomed.(i) <- Obj.repr 0) doomed;
    Gc.full_major ();
    ignore (Sys.opaque_identity doomed);
    Array.fill doomed 0 (2 * n) (Obj.repr 0);
    forget ();
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
  if Par.multicore && deleted_by_finalisers () < 100 then
    fail "finalisers deleted only %d roots" (deleted_by_finalisers ())

(* Blocks that die young: their finalisers run at the end of the minor collection that scans the pool their roots are
   in. *)
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

(* A collection that moves a closure allocates its new place and writes its address into the root at once, and copies
   what is inside later, when all roots have been visited. In between, the header before an infix pointer is whatever an
   earlier block left there. As in the tests above, finalisers modify roots just then, and delete them, during the visit
   or (`later`) after it; the marker is under way, so their values are darkened. The
   earlier blocks are tuples that hold a number that looks like the header of a very large block, unmarked (in one of
   three cycles). *)
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
    forget ();
    let given = Array.init n (fun i -> create_or_fail (infix i)) in
    (* what is within the value of a root is moved after the visit *)
    let more = Array.init n (fun i -> create_or_fail (if later then Obj.repr (Some (text i)) else Obj.repr (text i))) in
    Array.iteri (fun i r -> if not (give i r) then begin delete r; given.(i) <- none end) given;
    Gc.minor ();
    Gc.major ();
    if later then Array.iteri (fun i r -> if (get r : string option) <> Some (text i) then fail "a value was lost")
      more else check "more" more;
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
  if Par.multicore && deleted_by_finalisers () < 100 then
    fail "finalisers deleted only %d roots" (deleted_by_finalisers ())
