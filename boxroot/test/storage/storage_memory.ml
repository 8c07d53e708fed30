(* SPDX-License-Identifier: MIT *)
(* What storages cost, in memory and time, and what the checked build counts. *)

open Root
open Storage_common

let bounded what step = peaks ~first:(scale 60) ~others:(scale 120) ~kb:12_000 what step

let memory () =
  let s = create "" and few = if pool_capacity () < 100 then 2 else 30 in
  bounded "cleared" (fun i -> for j = 1 to 20_000 do keep (add s j) done; clear s; if i mod 7 = 0 then Gc.minor ());
  bounded "cleared, of young values" (fun i ->
    for j = 1 to 20_000 do keep (add s (ref j)) done; clear s; if i mod 7 = 0 then ignore (Gc.major_slice 1000));
  bounded "deleted" (fun i ->
    let some = List.init 20 (fun j -> let t = create "" in for k = 1 to j * few do keep (add t (ref k)) done; t) in
    if i mod 2 = 0 then List.iter delete some else List.iter delete_elsewhere some;
    if i mod 5 = 0 then Gc.minor ());
  if Par.multicore then
    bounded "of domains that end" (fun i ->
      if i mod 3 = 0 then begin
        let t = create "" in
        Par.join (Par.spawn (fun () ->
          for j = 1 to 100 * few do keep (add s (ref j)); keep (add t (ref j)) done));
        if i mod 2 = 0 then clear s;
        delete t
      end);
  delete s

(* The checked build counts no root that was dropped, whatever domain made it. *)
let reported () =
  if not (is_checked ()) then skip "about the checked build";
  let s = create "" in
  let fill () = for i = 1 to 100 do keep (add s i) done in
  let step = Atomic.make 0 in
  fill ();
  if Par.multicore then begin
    Par.join (Par.spawn fill);
    let other = Par.spawn (fun () ->
      fill ();
      Atomic.set step 1;
      while Atomic.get step = 1 do Par.relax () done)
    in
    while Atomic.get step = 0 do Par.relax () done;
    if report () <> 300 then fail "%d roots" (report ());
    clear s;
    if report () <> 0 then fail "%d roots are left" (report ());
    Atomic.set step 2;
    Par.join other
  end;
  fill ();
  delete s;
  if report () <> 0 then fail "%d roots are left at the end" (report ())

(* Memory of short sessions serves the next ones, though the collector does not run. *)
let sessions () =
  let use s i = for j = 1 to 1 + (i mod 50) do keep (add s j) done in
  let each what n ends =
    peaks ~first:5 ~others:95 ~kb:3000 what (fun _ -> for i = 1 to n / 100 do
      let s = create "" in
      use s i;
      ends s
    done)
  in
  each "deleted" (scale 20_000) delete;
  each "deleted without the lock" (scale 2_000) delete_elsewhere;
  let kept = create "" in
  each "cleared" (scale 20_000) (fun s -> delete s; use kept 7; clear kept);
  if Par.multicore then begin
    (* another domain has deleted a root, which it has not recorded yet, *)
    let turn = Atomic.make 0 and pool = Array.init 5 (fun _ -> add kept 0) and some = Array.make 20 0 in
    let other = Par.spawn (fun () ->
      Root.delete pool.(0);
      Atomic.set turn 1;
      while Atomic.get turn <> 3 do
        if Atomic.get turn = 2 then begin Array.iteri (fun i s -> use s i) some; Atomic.set turn 1 end;
        Par.relax ()
      done)
    in
    let await () = while Atomic.get turn <> 1 do Par.relax () done in
    await ();
    each "beside another domain" (scale 20_000) delete;
    each "cleared beside another domain" (scale 20_000) (fun s -> delete s; use kept 7; clear kept);
    (* and makes roots in storages that this one deletes *)
    peaks ~first:5 ~others:100 ~kb:3000 "of another domain" (fun _ ->
      for i = 0 to 19 do some.(i) <- create "" done;
      Atomic.set turn 2;
      await ();
      Array.iter delete some);
    Atomic.set turn 3;
    Par.join other
  end;
  delete kept

(* No storage has the name of another, however often storages are cleared. Pools of domains that have ended find their
   storage by its name; those of wide roots are such, too. *)
let names () =
  if not Par.multicore then skip "one domain";
  let n = 20 in
  let wides = Array.init n (fun i -> wide (text i) (text (-i))) in
  let storages = Array.init n (fun _ -> let s = create "" in clear s; s) in
  let roots = Array.make_matrix n n none in
  Par.join (Par.spawn (fun () ->
    Array.iteri (fun i s -> for j = 0 to n - 1 do roots.(i).(j) <- add s (text (i + j)) done) storages));
  collect ();
  let more = Array.init (n * n) (fun i -> wide (text i) (text (-i))) in
  collect ();
  let check i r = if wide_get r 0 <> text i || wide_get r 1 <> text (-i) then fail "wide root %d" i in
  Array.iteri check wides;
  Array.iteri check more;
  Array.iteri (fun i -> Array.iteri (fun j r -> if Root.get r <> text (i + j) then fail "root %d of %d" j i)) roots;
  Array.iteri (fun i s -> if count s <> n then fail "%d roots in storage %d" (count s) i) storages;
  Array.iter delete storages;
  Array.iter wide_delete wides;
  Array.iter wide_delete more

(* The cost of dropping is that of pools, not of roots: none of them is written to. *)
let cost () =
  if is_checked () || is_sanitized () then skip "about releases";
  let s = create "" in
  for round = 1 to 3 do
    let roots = Array.init (50 * pool_capacity ()) (fun i -> add s i) in
    if round > 1 then Gc.minor ();
    clear s;
    Array.iteri (fun i r -> if Root.deref r <> i then fail "round %d: root %d was written to" round i) roots;
    Gc.minor ()
  done;
  delete s

let many () =
  let n = scale 3000 in
  let all =
    Array.init n (fun i -> let s = create (text i) in (s, Array.init (i mod 5) (fun j -> add s (text (i + j)))))
  in
  let check () =
    Array.iteri (fun i (s, roots) ->
      if name s <> text i || count s <> i mod 5 then fail "storage %d: %s, %d" i (name s) (count s);
      Array.iteri (fun j r -> if Root.get r <> text (i + j) then fail "%d of storage %d" j i) roots) all
  in
  check ();
  collect ();
  check ();
  Array.iteri (fun i (s, _) -> if i mod 2 = 0 then clear s) all;
  Array.iteri (fun i (s, roots) -> if i mod 2 = 0 then all.(i) <- (s, Array.map (fun _ -> none) roots)) all;
  Array.iteri (fun i (s, roots) ->
    if i mod 2 = 0 then all.(i) <- (s, Array.init (Array.length roots) (fun j -> add s (text (i + j))))) all;
  Gc.minor ();
  collect ();
  check ();
  Array.iter (fun (s, _) -> delete s) all;
  collect ();
  collect ();
  let before = pools_in_use () in
  if before > 10 && not (is_checked ()) then fail "%d pools are left" before

(* The n-th request for memory fails, or all from the n-th on. *)
let no_memory () =
  let attempt mode n =
    let failed = ref 0 and made = ref [] in
    let refused () =
      incr failed;
      if error () <> "no memory for more roots" then fail "said: %s" (error ());
      if !failed > 3 then disarm ()
    in
    let s0 = create "" in
    arm mode n;
    for i = 1 to 30 do
      match raw_create (text i) with
      | 0 -> refused ()
      | s ->
          for j = 1 to 200 do
            match raw_add s (text j) with 0 -> refused () | r -> made := (r, j) :: !made
          done
    done;
    for j = 1 to 5000 do match raw_add s0 (text j) with 0 -> refused () | r -> made := (r, j) :: !made done;
    disarm ();
    collect ();
    List.iter (fun (r, j) -> if Root.get r <> text j then fail "text %d" j) !made;
    clear s0;
    if Root.get (add s0 (text 1)) <> text 1 then fail "after";
    if !failed > 0 then 2 else 3
  in
  List.iter (fun mode ->
    let codes = List.init 25 (fun n -> Process.code_of_child (fun () -> attempt mode (n + 1))) in
    let failing = List.length (List.filter (( = ) 2) codes) in
    Printf.printf "%d runs in which something failed\n" failing;
    if failing < 3 then fail "nothing was tried") [ 1; 2 ]
