(* SPDX-License-Identifier: MIT *)
(* Regions that are written to: how they end; domains and processes. Parts pass at once with a runtime that does not
   track. *)
open Outheap_region
open Region_checks
open Region_track

(* --- how they end --- *)

type ring = { mutable to_heap : ring list; filler : string }

let[@inline never] ended f =
  majors 4;
  let before = unused () in
  with_ f;
  majors 5;
  unused () - before

let tracked_ends () =
  if can_track then (
    check "alone" (ended (fun () -> (get (ok "copy" (track (ref [])))) := fresh 3) = 1);
    let r = ok "copy" (track [| ref 1; ref 2 |]) in
    with_ (fun () -> let a = get r in a.(0) <- a.(1));
    check "a pointer to itself is none" (tracked r = 0 && get r == get r);
    check "and keeps nothing"
      (ended (fun () -> let a = get (ok "copy" (track [| ref 1; ref 2 |])) in a.(0) <- a.(1); a.(1) <- a.(0)) = 1);
    ok "delete" (delete (region r));
    (* a ring through the heap, and one through two regions *)
    let ring () = get (ok "copy" (track { to_heap = []; filler = "x" })) in
    check "a ring" (ended (fun () -> let a = ring () in a.to_heap <- [ a ]) = 1);
    check "two in a ring"
      (ended (fun () -> let a = ring () and b = ring () in a.to_heap <- [ b ]; b.to_heap <- [ a ]) = 2);
    check "a long chain"
      (ended (fun () ->
           let last = ref (ring ()) in
           for _ = 1 to 300 do
             let a = ring () in
             a.to_heap <- [ !last ];
             last := a
           done)
      = 301);
    (* one keeps the next *)
    let first = ref (ring ()) in
    check "kept by another" (ended (fun () -> !first.to_heap <- [ ring () ]) = 0);
    check "and read" (match !first.to_heap with [ x ] -> x.filler = "x" | _ -> false);
    check "both end" (ended (fun () -> first := { to_heap = []; filler = "" }) = 2);
    (* with a handle, and no pointer *)
    let r = ok "copy" (track (ref [])) in
    with_ (fun () -> get r := fresh 4);
    majors 3;
    Gc.compact ();
    disturb ();
    check "by a handle" (!(get r) = fresh 4);
    (* deletion *)
    ok "delete" (delete (region r));
    let r = ok "copy" (track { to_heap = []; filler = "x" }) in
    with_ (fun () -> let a = get r in a.to_heap <- [ a ]);
    is_error "delete a ring" (function Error (In_use { pointers; _ }) -> pointers > 0 | _ -> false) (delete (region r));
    with_ (fun () -> (get r).to_heap <- []);
    ok "delete" (delete (region r));
    (* weak pointers and ephemerons *)
    let w = Weak.create 2 in
    check "weak" (ended (fun () -> let a = ring () in a.to_heap <- [ a ]; Weak.set w 0 (Some a)) = 1);
    check "cleared" (not (Weak.check w 0) && Weak.get w 0 = None);
    let kept = ring () in
    Weak.set w 1 (Some kept);
    kept.to_heap <- [ { to_heap = []; filler = String.make 20 'k' } ];
    disturb ();
    majors 2;
    (match Weak.get w 1 with
    | Some k -> check "weak, in use" (k == kept && (List.hd k.to_heap).filler = String.make 20 'k')
    | None -> check "weak, in use" false);
    ignore (opaque kept))

(* The marker comes to the words of a region in slices, between which the program goes on. *)
let tracked_slices () =
  if can_track then (
    let n = 300_000 in
    let r = ok "copy" (track (Array.make n [])) in
    let a = get r in
    with_ (fun () -> Array.fill a 0 n (fresh 1));
    Gc.full_major ();
    check "all of them" (tracked r = n);
    with_ (fun () -> Array.fill a 0 n []);
    let parts = ref 0 and slices = ref 0 in
    while tracked r > 0 && !slices < 100_000 do
      incr slices;
      slice 1000;
      let left = tracked r in
      if left > 0 && left < n then incr parts
    done;
    check (Printf.sprintf "%d parts in %d slices" !parts !slices) (tracked r = 0 && !parts > 50);
    (* values move from words that were not visited to others, which were, through registers and the heap *)
    let n = 5000 in
    let r = ok "copy" (track (Array.make n [])) in
    let a = get r and number = Array.init n Fun.id and taken = Queue.create () in
    for i = 0 to n - 1 do a.(i) <- fresh i done;
    Gc.full_major ();
    for step = 1 to 60_000 do
      let i = Random.int n and j = Random.int n in
      let x = a.(i) and y = a.(j) and k = number.(i) in
      a.(i) <- y; a.(j) <- x;
      number.(i) <- number.(j); number.(j) <- k;
      if step land 15 = 0 then (
        let i = Random.int n in
        if a.(i) <> [] then (Queue.add (a.(i), number.(i)) taken; a.(i) <- []; number.(i) <- -1));
      if step land 15 = 7 && Queue.length taken > 20 then (
        let i = ref (Random.int n) in
        while number.(!i) >= 0 do i := (!i + 1) mod n done;
        let x, k = Queue.pop taken in
        a.(!i) <- x; number.(!i) <- k);
      if step land 3 = 0 then slice 40;
      if step land 1023 = 0 then ignore (opaque (List.init 100 string_of_int))
    done;
    disturb ();
    let right x k = if k < 0 then x = [] else x = fresh k in
    check "what was moved" (Array.for_all2 right a number && Queue.fold (fun b (x, k) -> b && right x k) true taken);
    ok "revoke" (revoke (region r)))

(* Only Boxroot's roots hold the region, and what it refers to; it is taken out of them while the collector marks. *)
let tracked_roots () =
  if can_track then (
    let n = 200 in
    let full a = Array.for_all Fun.id (Array.mapi (fun i l -> l = fresh i) a) in
    let ended =
      ended (fun () ->
          with_ (fun () ->
              let a = get (ok "copy" (track (Array.make n []))) in
              for i = 0 to n - 1 do a.(i) <- fresh i done;
              Region_life.hold_in_roots a);
          for _ = 1 to 3 do
            disturb ();
            check "held by roots" (with_ (fun () -> full (Region_life.get_from_roots ())))
          done;
          slice 500;
          let a = Region_life.get_from_roots () in
          Region_life.drop_roots ();
          disturb ();
          check "taken out" (full a))
    in
    check "ends afterwards" (ended = 1))

(* Words that lead to stacks, whose values and regions nothing else holds. *)
let stacks () =
  if can_track then (
    let n = 200 in
    let r = ok "copy" (track ~closures:true (Array.make n (fun () -> []))) in
    let a = get r in
    with_ (fun () ->
        for i = 0 to n - 1 do
          a.(i) <-
            Region_domains.suspend (fun () ->
                let l = fresh i and inner = get (ok "copy" (track (ref []))) in
                inner := fresh (i + 1);
                Region_domains.pause ();
                !inner @ l)
        done);
    for round = 1 to 3 do
      disturb ();
      if round = 2 then Gc.compact ()
    done;
    Array.iteri (fun i f -> if f () <> fresh (i + 1) @ fresh i then check "a stack" false) a;
    Array.fill a 0 n (fun () -> []);
    majors 4;
    check (Printf.sprintf "all but one end: %d live" (stats ()).live) ((stats ()).live = 1);
    ignore (opaque r))

(* A region is revoked when all domains have stored young values in it. *)
let tracked_revokes () =
  if can_track then
    for i = 1 to 30 do
      let r = ok "copy" (track (Array.make 2000 [])) in
      let a = get r in
      if i land 1 = 0 then Gc.full_major ();
      for j = 0 to 1999 do
        a.(j) <- fresh (i + j)
      done;
      let read = Array.sub a 0 500 in
      if i mod 3 = 0 then slice 500;
      ok "revoke" (revoke (region r));
      (match get r with _ -> check "Deleted" false | exception Deleted -> ());
      ignore (opaque (Array.make 300 i));
      if i mod 4 = 0 then Gc.compact () else disturb ();
      Array.iteri (fun j l -> if l <> fresh (i + j) then check "what was read" false) read
    done

(* --- domains, processes --- *)

(* The debug runtime of OCaml 5.3 miscounts live words when several domains compact, with regions or without. *)
let compact () =
  let miscounts = String.starts_with ~prefix:"5.3" Sys.ocaml_version in
  if not (miscounts && String.ends_with ~suffix:"d" (Sys.runtime_variant ())) then Gc.compact ()

let tracked_domains steps =
  if can_track then (
    let n = 4 and cells = 500 in
    let r = ok "copy" (track (Array.init cells (fun _ -> Atomic.make []), Array.make (n * cells) [])) in
    let work id () =
      let atomics, own = get r in
      let state = Random.State.make [| id |] in
      let last = Array.make cells [] in
      for i = 1 to steps do
        let j = Random.State.int state cells in
        last.(j) <- fresh (i + id);
        own.((id * cells) + j) <- last.(j);
        let c = atomics.(Random.State.int state cells) in
        let rec push () =
          let old = Atomic.get c in
          let short = if List.length old > 20 then [] else old in
          if not (Atomic.compare_and_set c old (string_of_int j :: short)) then push ()
        in
        push ();
        (match i mod 977 with 0 -> Gc.minor () | 1 -> slice 200 | _ -> ());
        if id = 0 && i mod 4001 = 0 then compact ();
        let k = Random.State.int state cells in
        if own.((id * cells) + k) <> last.(k) then check "domain" false;
        if not (List.for_all (fun s -> int_of_string s < cells) (Atomic.get atomics.(k))) then check "shared" false
      done
    in
    Region_domains.run n work;
    compact ();
    let atomics, own = get r in
    let good s = int_of_string s < cells in
    check "shared words" (Array.for_all (fun c -> List.for_all good (Atomic.get c)) atomics);
    check "words of domains" (Array.for_all (fun l -> l = [] || List.length l = 2) own))

(* Domains revoke what others have just written to; each makes its own, and ends. *)
let tracked_churn rounds =
  if can_track then (
    let work id () =
      for i = 1 to rounds do
        let r = ok "copy" (track (Array.make 100 [])) in
        let a = get r in
        for j = 0 to 99 do
          a.(j) <- fresh (i + j + id)
        done;
        let kept = a.(i mod 100) in
        (match i mod 3 with
        | 0 -> ok "revoke" (revoke (region r))
        | 1 -> Gc.minor ()
        | _ -> ());
        if kept <> fresh (i + (i mod 100) + id) then check "kept" false
      done
    in
    Region_domains.run 3 work;
    majors 5;
    check "all ended" ((stats ()).live = 0))

let tracked_forks () =
  if can_track then (
    let r = ok "copy" (track (Array.make 1000 [])) in
    let set n = Array.iteri (fun i _ -> (get r).(i) <- fresh (i + n)) (get r) in
    let holds n = Array.for_all Fun.id (Array.mapi (fun i l -> l = fresh (i + n)) (get r)) in
    set 1;
    let s =
      in_child (fun () ->
          disturb ();
          check "child: the parent's" (holds 1);
          set 2;
          Gc.compact ();
          disturb ();
          check "child: its own" (holds 2);
          ok "child: revoke" (revoke (region r));
          majors 2;
          !failures)
    in
    check ("child: " ^ status s) (s = Unix.WEXITED 0);
    disturb ();
    check "parent" (holds 1))
