(* SPDX-License-Identifier: MIT *)
(* Storages: their roots are roots as others; they are gone, and keep nothing alive, once the storage was cleared; what
   is made afterwards is not. *)

open Root

type storage = int
type handle = int

external raw_create : string -> storage = "s_create"
external raw_add : storage -> 'a -> Root.t = "s_add"
external add_here : storage -> 'a -> Root.t = "s_add_here"
external here : storage -> handle = "s_here"
external create_in : handle -> 'a -> Root.t = "s_create_in"
external raw_clear : storage -> bool = "s_clear"
external delete : storage -> unit = "s_delete"
external delete_elsewhere : storage -> unit = "s_delete_elsewhere"
external report : unit -> int = "s_report"
external wide : 'a -> 'a -> Root.t = "s_wide"
external wide_get : Root.t -> int -> 'a = "s_wide_get"
external wide_delete : Root.t -> unit = "s_wide_delete"
external count : storage -> int = "s_count"
external name : storage -> string = "s_name"
external error : unit -> string = "s_error"
external eperm : storage -> unit = "s_eperm"
external at_end : storage -> storage -> storage -> Obj.t = "s_at_end"
external finalised : unit -> int = "s_finalised"
external arm : int -> int -> unit = "o_arm"
external disarm : unit -> unit = "o_disarm"
external failures : unit -> int = "o_failures"

let create name = match raw_create name with 0 -> fail "no storage: %s" (error ()) | s -> s
let checked r = if r = none then fail "no root: %s" (error ()) else r
let add s v = checked (raw_add s v)
let add_here s v = checked (add_here s v)
let clear s = if not (raw_clear s) then fail "not cleared: %s" (error ())

(* --- the model ---------------------------------------------------------------------------------------------------- *)

let kinds =
  let fits = function Values.Owner | Begetter -> false | Ephemeron | Weak -> not Par.multicore | _ -> true in
  Array.of_list (List.filter fits (Array.to_list Values.kinds))

type entry = { mutable root : Root.t; mutable kind : Values.kind; mutable id : int; mutable aux : int }

(* One thread at a time uses a storage: `lock` is for those that several domains share. *)
type set = { mutable storage : storage; mutable entries : entry option array; mutable live : int; lock : Mutex.t }

let new_set i = { storage = create (text i); entries = Array.make 1200 None; live = 0; lock = Mutex.create () }

let player ~shared seed steps =
  let rng = Random.State.make [| seed |] in
  let rnd n = Random.State.int rng n in
  let sets = Array.append (Array.init 5 new_set) shared in
  let left = ref steps in
  let wrong e what = fail "seed %d, %d steps left: %s %d: %s" seed !left (Values.name e.kind) e.id what in
  let check e = if not (Values.is e.kind e.id e.aux (Root.get e.root)) then wrong e "another value" in
  let fresh () =
    let kind = kinds.(rnd (Array.length kinds)) and id = rnd 100_000 in
    let v = Values.make kind id in
    (v, kind, id, if Values.has_cell kind then Values.custom_cell v else 0)
  in
  let put set i =
    let v, kind, id, aux = fresh () in
    let root = if rnd 2 = 0 then add set.storage v else add_here set.storage v in
    set.entries.(i) <- Some { root; kind; id; aux };
    set.live <- set.live + 1
  in
  let remove set i e =
    check e;
    (match rnd 8 with
     | 0 -> Root.delete_nolock e.root
     | _ -> Root.delete e.root);
    set.entries.(i) <- None;
    set.live <- set.live - 1
  in
  let change e =
    check e;
    let v, kind, id, aux = fresh () in
    e.root <- Root.modify e.root v;
    e.kind <- kind; e.id <- id; e.aux <- aux
  in
  let forget set =
    Array.fill set.entries 0 (Array.length set.entries) None;
    set.live <- 0
  in
  let step set =
    let i = rnd (Array.length set.entries) in
    (match set.entries.(i), rnd 10 with
     | None, _ -> put set i
     | Some e, (0 | 1) -> remove set i e
     | Some e, (2 | 3 | 4) -> change e
     | Some e, _ -> check e);
    match rnd 700 with
    | 0 -> clear set.storage; forget set
    | 1 ->
        if rnd 4 = 0 then delete_elsewhere set.storage else delete set.storage;
        set.storage <- create (text i);
        forget set
    | 2 -> for i = 0 to Array.length set.entries - 1 do if set.entries.(i) = None then put set i done
    | 3 ->
        (* at least: deletions may be pending. Of other domains' roots it does not know. *)
        let n = count set.storage in
        if n < set.live && not (Array.memq set shared) then
          fail "seed %d, %d steps left: %d roots, and %d counted" seed !left set.live n
    | _ -> ()
  in
  while !left > 0 do
    decr left;
    let set = sets.(rnd (Array.length sets)) in
    Mutex.lock set.lock;
    step set;
    Mutex.unlock set.lock;
    match rnd 400 with
    | 0 | 1 | 2 | 3 | 4 | 5 -> Gc.minor ()
    | 6 | 7 | 8 | 9 | 10 | 11 | 12 -> ignore (Gc.major_slice 200)
    | 13 -> if rnd 40 = 0 then Root.compact ()
    | 14 -> if rnd 20 = 0 then collect ()
    | 15 -> Thread.yield ()
    | _ -> ()
  done;
  collect ();
  Array.iteri (fun i set ->
    Mutex.lock set.lock;
    Array.iter (Option.iter check) set.entries;
    if i < 5 then delete set.storage;
    Mutex.unlock set.lock) sets

let steps = scale 300_000

(* One in `part` of the steps. Domains wait for one another, and take long. *)
let model ~part ~domains ~threads () =
  if domains > 1 && not Par.multicore then skip "one domain";
  let rounds = if domains > 1 then 4 else 1 and each = steps / part / threads / if domains > 1 then 12 else 1 in
  let shared = Array.init 4 (fun i -> new_set (100 + i)) in
  for round = 1 to rounds do
    (* what they made in the shared ones stays *)
    Players.all ~domains ~threads (fun n -> player ~shared (Players.seed + (100 * round) + n) each)
  done;
  Array.iter (fun set -> delete set.storage) shared

(* --- what they promise -------------------------------------------------------------------------------------------- *)

let basics () =
  let s = create "a name" and t = create "" in
  if name s <> "a name" || name t <> "" then fail "names: %s, %s" (name s) (name t);
  let long = create (String.make 100 'x') in
  if name long <> String.make 47 'x' then fail "the long name: %s" (name long);
  let roots = List.init 1000 (fun i -> (i, (if i mod 2 = 0 then add s (text i) else add_here s (text i)))) in
  let others = List.init 10 (fun i -> (i, add t (text (-i)))) in
  let plain = Root.create_or_fail (text 7) in
  if count s <> 1000 || count t <> 10 then fail "counts: %d, %d" (count s) (count t);
  collect ();
  List.iter (fun (i, r) -> if Root.get r <> text i then fail "value %d" i) roots;
  List.iter (fun (i, r) -> if i < 300 then Root.delete r) roots;
  collect ();
  collect ();
  if (not (is_checked ())) && count s <> 700 then fail "%d left of 700" (count s);
  clear s;
  if count s <> 0 || count t <> 10 then fail "counts after: %d, %d" (count s) (count t);
  List.iter (fun (i, r) -> if Root.get r <> text (-i) then fail "other value %d" i) others;
  if Root.get plain <> text 7 then fail "the root in none";
  let again = add s (text 5) in
  collect ();
  if Root.get again <> text 5 || count s <> 1 then fail "after: %s, %d" (Root.get again) (count s);
  clear s;
  clear s;
  delete s;
  delete long;
  delete t;
  Root.delete plain

let without_lock () =
  let s = create "" in
  let r = add s (text 1) in
  eperm s;
  if Root.get r <> text 1 then fail "another value";
  delete_elsewhere s;
  collect ()

(* Nothing is kept alive, and nothing dies too early, whatever the collector does at that moment. *)
let dropped () =
  let n = 2000 in
  for round = 1 to scale 60 do
    let s = create "" and t = create "" in
    let alive = Stdlib.Weak.create n in
    let kept = Array.init n (fun i -> add t (text i)) in
    for i = 0 to n - 1 do
      let v = ref i in
      Stdlib.Weak.set alive i (Some v);
      keep (add s v)
    done;
    for _ = 1 to round mod 30 do ignore (Gc.major_slice 1500) done;
    for i = 0 to n - 1 do if not (Stdlib.Weak.check alive i) then fail "round %d: value %d is dead" round i done;
    if round mod 3 = 0 then delete s else clear s;
    if round mod 2 = 0 then for i = 0 to n - 1 do keep (add (if round mod 3 = 0 then t else s) (text i)) done;
    collect ();
    collect ();
    for i = 0 to n - 1 do if Stdlib.Weak.check alive i then fail "round %d: value %d is alive" round i done;
    Array.iteri (fun i r -> if Root.get r <> text i then fail "round %d: text %d" round i) kept;
    delete t
  done

(* While the collector marks, the program moves values from roots to a block that is marked already, and clears. *)
let moved_while_marking () =
  let n = 20_000 in
  let holder = Array.make n "" in
  for round = 1 to scale 100 do
    let s = create "" in
    let roots = Array.init n (fun i -> add s (text (i + round))) in
    collect ();
    let slices = 1 + (round mod 25) in
    if round mod 2 = 1 then Gc.minor ();
    for _ = 1 to slices do ignore (Gc.major_slice (1 + (round * 37 mod 3000))); Gc.minor () done;
    Array.iteri (fun i r -> holder.(i) <- Root.get r) roots;
    if round mod 2 = 0 then clear s else delete s;
    if round mod 3 = 0 then Gc.minor ();
    let again = create "" in
    for i = 1 to n do keep (add again i) done;
    collect ();
    Array.iteri (fun i t -> if t <> text (i + round) then fail "round %d: text %d is %s" round i t) holder;
    delete again;
    if round mod 2 = 0 then delete s
  done

(* Modifications keep a root in its storage. *)
let modified () =
  for round = 1 to scale 30 do
    let s = create "" in
    let n = 3000 in
    let roots = Array.init n (fun i -> add s (text i)) in
    if round mod 2 = 0 then Gc.minor ();
    for i = 1 to round mod 9 do ignore (Gc.major_slice (i * 500)) done;
    let change () = Array.iteri (fun i r -> roots.(i) <- Root.modify r (text (i + round))) roots in
    if round mod 3 = 0 then Par.elsewhere change else change ();
    collect ();
    Array.iteri (fun i r -> if Root.get r <> text (i + round) then fail "text %d" i) roots;
    if round mod 3 <> 0 && count s < n then fail "%d of %d" (count s) n;
    let alive = Stdlib.Weak.create n in
    Array.iteri (fun i r ->
      let v = ref i in
      Stdlib.Weak.set alive i (Some v);
      roots.(i) <- Root.modify r (Obj.magic v)) roots;
    clear s;
    collect ();
    collect ();
    for i = 0 to n - 1 do if Stdlib.Weak.check alive i then fail "value %d is alive" i done;
    delete s
  done

(* --- cost and memory ---------------------------------------------------------------------------------------------- *)

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

(* --- domains, forks, finalisers, teardown ------------------------------------------------------------------------- *)

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

(* --- misuse ------------------------------------------------------------------------------------------------------- *)

external use_after_clear : 'a -> unit = "s_use_after_clear"
external delete_after_clear : 'a -> unit = "s_delete_after_clear"
external use_after_delete : 'a -> unit = "s_use_after_delete"
external delete_twice : 'a -> unit = "s_delete_twice"

let misuses =
  [ ("use-after-clear", use_after_clear, [ "use after delete"; "storage.c:103"; "storage.c:101"; "storage.c:102" ]);
    ("delete-after-clear", delete_after_clear, [ "double delete"; "storage.c:104"; "storage.c:101"; "storage.c:102" ]);
    ("use-after-delete", use_after_delete, [ "boxroot_storage_add"; "deleted"; "storage.c:105" ]);
    ("delete-twice", delete_twice, [ "boxroot_storage_delete"; "deleted"; "storage.c:106" ]) ]

let () =
  main ~slow:[ "model-domains-long"; "model-both-long" ]
    ([ ("basics", basics); ("without-lock", without_lock); ("dropped", dropped);
       ("moved-while-marking", moved_while_marking); ("modified", modified); ("memory", memory); ("cost", cost);
       ("sessions", sessions); ("batches", batches); ("reported", reported); ("names", names);
       ("many", many); ("no-memory", no_memory); ("late-deletions", late_deletions);
       ("ended-domains", ended_domains); ("cleared-by-another", cleared_by_another); ("finalisers", finalisers);
       ("dropped-elsewhere", dropped_elsewhere); ("remembered-pool", remembered_pool);
       ("at-the-end", at_the_end); ("after-the-end", after_the_end); ("forked", forked); ("torn-down", torn_down);
       ("c++", cplusplus); ("model", model ~part:1 ~domains:1 ~threads:1);
       ("model-threads", model ~part:1 ~domains:1 ~threads:3); ("model-domains", model ~part:10 ~domains:3 ~threads:1);
       ("model-both", model ~part:10 ~domains:2 ~threads:2);
       ("model-domains-long", model ~part:1 ~domains:3 ~threads:1);
       ("model-both-long", model ~part:1 ~domains:2 ~threads:2) ]
     @ Process.misuse_tests misuses)
