(* SPDX-License-Identifier: MIT *)
(* Storages beside domains, forks, finalisers, and teardown. *)

open Root
open Storage_common

(* Many domains have deleted roots that they have not recorded yet when the storages of these are cleared: the slots
   serve no others before. *)
let batches () =
  if not Par.multicore then skip "one domain";
  let domains = 40 and n = 4000 in
  let s = create "" and round = ref 0 and busy = ref 0 in
  let doomed = Array.make domains none in
  let lock = Mutex.create () and changed = Condition.create () in
  let locked f = Mutex.lock lock; f (); Mutex.unlock lock in
  let rec work i past () =
    let now = ref 0 in
    locked (fun () -> while !round = past do Condition.wait changed lock done; now := !round);
    if !now > 0 then begin
      Root.delete doomed.(i);
      locked (fun () -> decr busy; Condition.broadcast changed);
      work i !now ()
    end
  in
  let all = List.init domains (fun i -> Par.spawn (work i 0)) in
  (* each deletes one of these roots *)
  let delete_of roots =
    for i = 0 to domains - 1 do doomed.(i) <- roots.(i * (Array.length roots / domains)) done;
    locked (fun () ->
        busy := domains;
        incr round;
        Condition.broadcast changed;
        while !busy > 0 do Condition.wait changed lock done)
  in
  let check what roots = Array.iteri (fun i r -> if Root.get r <> text i then fail "%s: root %d" what i) roots in
  for _ = 1 to scale 20 do
    let roots = Array.init n (fun i -> add s (text i)) and others = Array.init domains (fun i -> add_here s (text i)) in
    check "at first" roots;
    delete_of (if !round land 1 = 0 then roots else others);
    clear s;
    let more = Array.init n (fun i -> add s (text i)) in
    check "after the clear" more;
    let kept = Array.init domains (fun i -> create_or_fail (text i)) in
    delete_of kept; (* which records the deletions before *)
    Gc.minor ();
    let again = Array.init n (fun i -> add s (text i)) in
    check "when they are recorded" more;
    check "anew" again;
    let cells = List.sort_uniq compare (Array.to_list more @ Array.to_list again) in
    if List.length cells < 2 * n then fail "a slot was handed out twice";
    clear s
  done;
  locked (fun () -> round := -1; Condition.broadcast changed);
  List.iter Par.join all;
  delete s;
  for _ = 1 to 3 do Gc.full_major () done;
  let left = pools_in_use () in
  if left > 10 + (100 / pool_capacity ()) then fail "%d pools are in use at the end" left

(* Deletions that another domain has collected and not recorded yet come after the storage was cleared, and find no root
   that is newer. *)
let late_deletions () =
  if not Par.multicore then skip "one domain";
  for round = 1 to scale 60 do
    let s = create "" in
    let n = 4000 in
    let roots = Array.init n (fun i -> add s (text i)) in
    let deleted = Atomic.make false and go_on = Atomic.make false in
    let other = Par.spawn (fun () ->
      for i = 0 to n - 1 do if i mod 3 = 0 then Root.delete roots.(i) done;
      Atomic.set deleted true;
      while not (Atomic.get go_on) do Par.relax () done)
    in
    while not (Atomic.get deleted) do Par.relax () done;
    if round mod 2 = 0 then ignore (Gc.major_slice 1000);
    clear s;
    let fresh = Array.init n (fun i -> add s (text (i + round))) in
    let plain = Array.init n (fun i -> Root.create_or_fail (text (i - round))) in
    for i = 1 to round mod 5 do if i mod 2 = 0 then Gc.minor () else ignore (Gc.major_slice 2000) done;
    Atomic.set go_on true;
    Par.join other;
    for _ = 1 to 4 do
      Gc.minor ();
      let more = Array.init 500 (fun i -> add s (text i)) in
      Array.iteri (fun i r -> if Root.get r <> text i then fail "more, text %d" i) more
    done;
    collect ();
    Array.iteri (fun i r -> if Root.get r <> text (i + round) then fail "text %d" i) fresh;
    Array.iteri (fun i r -> if Root.get r <> text (i - round) then fail "plain text %d" i; Root.delete r) plain;
    delete s
  done

(* Roots of domains that have ended: they stay, and they are dropped with the others; also while their pools belong to
   nobody. *)
let ended_domains () =
  if not Par.multicore then skip "one domain";
  for round = 1 to scale 60 do
    let s = create "" and t = create "" in
    let n = 3000 in
    let alive = Stdlib.Weak.create n in
    let stay = ref [||] in
    Par.join (Par.spawn (fun () ->
      for i = 0 to n - 1 do
        let v = ref i in
        Stdlib.Weak.set alive i (Some v);
        keep (add s v)
      done;
      if round mod 3 = 0 then ignore (Gc.major_slice 1000);
      stay := Array.init n (fun i -> add t (text i))));
    if round mod 2 = 0 then begin
      Gc.minor ();
      if count s > n || count t > n then fail "counts: %d, %d" (count s) (count t)
    end;
    for i = 1 to round mod 4 do ignore (Gc.major_slice (i * 1000)) done;
    clear s;
    let fresh = Array.init 500 (fun i -> add s (text i)) in
    collect ();
    collect ();
    if not marks_late then ()
    else for i = 0 to n - 1 do if Stdlib.Weak.check alive i then fail "round %d: value %d is alive" round i done;
    Array.iteri (fun i r -> if Root.get r <> text i then fail "round %d: text %d" round i) !stay;
    Array.iteri (fun i r -> if Root.get r <> text i then fail "round %d: fresh text %d" round i) fresh;
    if count s <> 500 then fail "later counts: %d, %d" (count s) (count t);
    delete s;
    delete t
  done

(* Another domain's handle takes the slow path once its storage was cleared. *)
let cleared_by_another () =
  if not Par.multicore then skip "one domain";
  let s = create "" in
  let turn = Atomic.make 0 in
  let rounds = scale 200 in
  let wait_for n = while Atomic.get turn <> n do Par.relax () done in
  let other = Par.spawn (fun () ->
    let h = here s in
    for i = 0 to rounds - 1 do
      wait_for (2 * i);
      let fresh = Array.init 300 (fun j -> checked (create_in h (text (i + j)))) in
      if i mod 3 = 0 then Gc.minor ();
      Array.iteri (fun j r -> if Root.get r <> text (i + j) then fail "round %d: text %d" i j) fresh;
      Atomic.set turn ((2 * i) + 1)
    done;
    wait_for (2 * rounds) (* or else its last roots are adopted, and counted *))
  in
  for i = 0 to rounds - 1 do
    wait_for ((2 * i) + 1);
    let mine = Array.init 100 (fun j -> add s (text j)) in
    let there = count s in
    if there <> 100 then fail "round %d: %d roots" i there;
    clear s;
    keep mine;
    let left = count s in
    if left <> 0 then fail "round %d: %d roots are left" i left;
    if i mod 5 = 0 then collect ();
    Atomic.set turn (2 * (i + 1))
  done;
  Par.join other;
  delete s

(* A domain that has made roots, and does not look at the storage again, drops them when it collects. *)
let dropped_elsewhere () =
  if not Par.multicore then skip "one domain";
  for round = 1 to scale 10 do
    let s = create "" and n = 3000 in
    let alive = Stdlib.Weak.create n in
    let made = Atomic.make false and stop = Atomic.make false in
    let other = Par.spawn (fun () ->
      for i = 0 to n - 1 do
        let v = ref i in
        Stdlib.Weak.set alive i (Some v);
        keep (add s v)
      done;
      Atomic.set made true;
      while not (Atomic.get stop) do Par.relax () done)
    in
    while not (Atomic.get made) do Par.relax () done;
    collect ();
    for i = 0 to n - 1 do if not (Stdlib.Weak.check alive i) then fail "round %d: value %d is dead" round i done;
    if round mod 2 = 0 then delete s else clear s;
    for _ = 1 to 3 do collect () done;
    for i = 0 to n - 1 do if Stdlib.Weak.check alive i then fail "round %d: value %d is alive" round i done;
    if round mod 2 = 1 then delete s;
    Atomic.set stop true;
    Par.join other
  done

(* A thread remembers the pool in which it made its last root. Meanwhile that has become a storage's. *)
let remembered_pool () =
  for round = 1 to scale 40 do
    let m = Mutex.create () and c = Condition.create () and turn = ref 0 and kept = ref none in
    let pass n = turn := n; Condition.broadcast c in
    let wait n = while !turn <> n do Condition.wait c m done in
    Mutex.lock m;
    let t = Thread.create (fun () ->
      Mutex.lock m;
      Root.delete (Root.create_or_fail (text 1));
      pass 1;
      wait 2;
      kept := Root.create_or_fail (text round);
      pass 3;
      Mutex.unlock m) ()
    in
    wait 1;
    let filler = Array.init (2 * pool_capacity ()) (fun i -> Root.create_or_fail i) in
    Array.iter Root.delete filler;
    for _ = 1 to 4 do Root.compact () done;
    let some = List.init 12 (fun i -> let s = create "" in keep (add s (text i)); s) in
    pass 2;
    wait 3;
    List.iter clear some;
    for _ = 1 to 3 do Gc.minor () done;
    List.iter (fun s -> for i = 1 to 100 do keep (add s (text i)) done) some;
    collect ();
    if Root.get !kept <> text round then fail "round %d: %s" round (Root.get !kept);
    Root.delete !kept;
    List.iter delete some;
    Mutex.unlock m;
    Thread.join t
  done

let finalisers () =
  for round = 1 to scale 40 do
    let s = create "" and t = create "" and deleted = create "" in
    for i = 1 to 3000 do keep (add s (ref i)) done;
    for i = 1 to 3000 do keep (add deleted (ref i)) done;
    for _ = 1 to 20 do keep (at_end s 0 t) done;
    keep (at_end 0 deleted t); (* not s: the order of finalisers is the runtime's *)
    let before = finalised () in
    if round mod 4 = 0 then collect () else if round mod 4 = 1 then Gc.minor () else ignore (Gc.major_slice 10_000);
    for i = 1 to 100 do ignore (Sys.opaque_identity (Array.make 100 i)) done;
    collect ();
    collect ();
    if finalised () < before + 21 then fail "%d of 21 finalised" (finalised () - before);
    if count t <> 21 then fail "%d of 21 added" (count t);
    delete t;
    delete s
  done

external trying : storage -> Obj.t = "s_trying"
external granted : unit -> int = "s_granted"
external refused : unit -> int = "s_refused"
external last_act : int -> storage -> storage -> unit = "s_last_act"
external wait_for_acts : int -> unit = "s_wait_for_acts"

(* Finalisers that run as a domain ends, or when another takes over what it leaves. *)
let at_the_end () =
  if not Par.multicore then skip "one domain";
  let before = granted () + refused () and rounds = scale 40 in
  for round = 1 to rounds do
    let s = create "" in
    let other = add s (text round) in
    Par.join (Par.spawn (fun () ->
      if round mod 2 = 0 then keep (add s (text 1));
      for _ = 1 to 20 do keep (trying s) done;
      if round mod 3 = 0 then Gc.minor ();
      for _ = 1 to 20 do keep (trying s) done));
    if round mod 4 = 0 then Gc.minor () else collect ();
    for i = 1 to 300 do keep (add s (text i)) done;
    collect ();
    if Root.get other <> text round then fail "round %d: %s" round (Root.get other);
    if round mod 2 = 0 then clear s;
    delete s
  done;
  for _ = 1 to 3 do collect () done;
  Printf.printf "%d granted, %d refused\n" (granted ()) (refused ());
  if granted () + refused () - before <> 40 * rounds then fail "not all were finalised"

(* Destructors of thread-local data. *)
let after_the_end () =
  if not Par.multicore then skip "one domain";
  let rounds = scale 40 in
  for round = 1 to rounds do
    let s = create "" and t = create "" in
    let other = add s (text round) in
    Par.join (Par.spawn (fun () ->
      last_act (round mod 2) s t;
      for i = 1 to 3000 do keep (add s (text i)); keep (add t (text i)) done));
    wait_for_acts round;
    for i = 1 to 300 do keep (add s (text i)) done;
    if round mod 2 = 0 then collect ();
    if Root.get other <> text round then fail "round %d: %s" round (Root.get other);
    delete s
  done

let forked () =
  let s = create "" in
  let roots = Array.init 3000 (fun i -> add s (text i)) in
  let use () =
    collect ();
    Array.iteri (fun i r -> if Root.get r <> text i then fail "text %d" i) roots;
    let t = create "" in
    keep (add t (text 1));
    delete t;
    clear s;
    keep (Array.init 3000 (fun i -> add s (text i)));
    collect ()
  in
  flush_all ();
  (match Unix.fork () with
   | 0 -> (match use () with () -> exit_now 0 | exception e -> prerr_endline (Printexc.to_string e); exit_now 1)
   | pid -> if snd (Unix.waitpid [] pid) <> Unix.WEXITED 0 then fail "the child failed");
  use ();
  delete s

external cxx : int -> bool -> int = "s_cxx"

let cplusplus () =
  let run check = match cxx 3000 check with 0 -> () | wrong -> fail "%d wrong" wrong in
  run false;
  collect ();
  run true;
  collect ()

let torn_down () =
  let s = create "survivor" and t = create "" in
  for i = 1 to 3000 do keep (add s (text i)); keep (add t (text i)) done;
  let h = here s in
  Root.teardown ();
  if raw_add s (text 1) <> none || raw_clear s || raw_create "" <> 0 then fail "used after teardown";
  if (not (is_checked ())) && create_in h 1 <> none then fail "a handle is used after teardown";
  delete t;
  if not (Root.setup ()) then fail "no second start";
  if count s <> 0 || name s <> "survivor" then fail "%d roots in %s" (count s) (name s);
  for round = 1 to 3 do
    let roots = Array.init 2000 (fun i -> add s (text (i + round))) in
    collect ();
    Array.iteri (fun i r -> if Root.get r <> text (i + round) then fail "text %d" i) roots;
    clear s
  done;
  let u = create "" in
  keep (add u (text 1));
  delete s;
  delete u
