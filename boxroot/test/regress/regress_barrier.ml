(* SPDX-License-Identifier: MIT *)
(* The deletion barrier: values whose roots end while the marker is on its way. *)

open Root
open Regress_common

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
    Array.iteri (fun i s ->
      if not (String.equal s (text i)) then fail "round %d: the value of root %d was lost: %S" round i s) values;
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
    Array.iteri (fun i s ->
      if not (String.equal s (text i)) then fail "round %d: the value of root %d was lost: %S" round i s) values;
    Array.iteri (fun i r -> if i land 1 = 1 then (if not (is_text r i) then fail "modified root %d" i; delete r)) roots
  done

(* The library marks roots in two pauses for each minor collection: after it, and in the slice half-way to the next. *)
let marked_in_two_pauses () =
  if is_rival () then skip "0.4.0 visits all roots at the start of a cycle";
  if is_stw () || is_conservative () || not Par.multicore then skip "roots are visited at the start of a cycle";
  let roots = make (min 400_000 (400 * pool_capacity ())) in
  let window = Array.make 4096 [] in
  Gc.full_major ();
  let minor () = (Gc.quick_stat ()).minor_collections and major () = (Gc.quick_stat ()).major_collections in
  let last = major () + 4 and at_minor = ref 0 and between = ref 0 in
  let minors = ref (minor ()) and darkened = ref (darkened_pools ()) in
  while major () < last do
    for _ = 1 to 64 do
      let i = Random.int (Array.length window) in
      window.(i) <- [ i; i; i ]
    done;
    let m = minor () and d = darkened_pools () in
    let sum = if m = !minors then between else at_minor in
    sum := !sum + d - !darkened;
    minors := m;
    darkened := d
  done;
  ignore (Sys.opaque_identity window);
  (* since OCaml 5.5 there is one step for each minor collection *)
  if marks_late then (if !at_minor + !between = 0 then fail "the library marked no pool")
  else if !between = 0 || !at_minor = 0 || !between * 4 < !at_minor || !at_minor * 8 < !between then
    fail "%d pools were marked after minor collections, %d between them" !at_minor !between;
  check "marked" roots
