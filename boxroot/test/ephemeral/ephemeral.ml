(* SPDX-License-Identifier: MIT *)
(* Ephemeral roots: the data is there, with what it contains, as long as the key lives; they keep no key alive, not by
   way of the data either; a dead one is so for ever. They are deleted anywhere. *)

open Root

type ephemeral = int

external raw_create : 'k -> 'd -> ephemeral = "e_create"
external get : ephemeral -> 'd option = "e_get"
external get_key : ephemeral -> 'k option = "e_get_key"
external is_alive : ephemeral -> bool = "e_is_alive" [@@noalloc]
external delete : ephemeral -> unit = "e_delete"
external delete_nolock : ephemeral -> unit = "e_delete_nolock"
external delete_elsewhere : ephemeral array -> unit = "e_delete_elsewhere"
external error : unit -> string = "e_error"
external eperm : unit -> unit = "e_eperm"
external arm : int -> int -> unit = "o_arm"
external disarm : unit -> unit = "o_disarm"
external failures : unit -> int = "o_failures"

let create k d = match raw_create k d with 0 -> fail "no ephemeral root: %s" (error ()) | e -> e
let observe v = let w = Stdlib.Weak.create 1 in Stdlib.Weak.set w 0 (Some v); w
let there w = Stdlib.Weak.check w 0

(* --- the model ---------------------------------------------------------------------------------------------------- *)

type key = {
  kind : Values.kind;
  id : int;
  aux : int;
  mutable held : Obj.t option;
  mutable dead : bool; (* as was seen *)
  mutable mark : int;  (* the last search that has met it *)
}

(* The data: a number, a text, values that are keys. *)
type data = { number : int; said : string; values : Obj.t list }

type entry = {
  ephemeral : ephemeral;
  key : key;
  data_number : int;
  others : key list; (* those whose values are in the data *)
  mutable data : data option; (* held *)
}

let player ~alone seed steps =
  let rng = Random.State.make [| seed |] in
  let rnd n = Random.State.int rng n in
  let keys : key option array = Array.make 1500 None in
  let entries : entry option array = Array.make 2500 None in
  let left = ref steps and search = ref 0 in
  let wrong k what = fail "seed %d, %d steps left: %s %d: %s" seed !left (Values.name k.kind) k.id what in
  (* Keys that must live have k.mark = !search afterwards: those that are held, and those in the data that is held, or
     whose key lives. *)
  let find_living () =
    incr search;
    let of_key = Hashtbl.create 1000 in
    let rec meet k =
      if k.mark <> !search then begin
        k.mark <- !search;
        List.iter (fun e -> List.iter meet e.others) (Hashtbl.find_all of_key k.id)
      end
    in
    let each f = Array.iter (Option.iter f) in
    each (fun e -> Hashtbl.add of_key e.key.id e) entries;
    each (fun e -> if e.data <> None then List.iter meet e.others) entries;
    each (fun e -> if Values.lasts e.key.kind e.key.id then meet e.key) entries;
    each (fun k -> if k.held <> None then meet k) keys
  in
  let must_live k = find_living (); k.mark = !search in
  let dead k = if not k.dead then if must_live k then wrong k "dead, and should not be" else k.dead <- true in
  let alive k v =
    if k.dead then wrong k "was dead, and is alive";
    if not (Values.is k.kind k.id k.aux v) then wrong k "another value"
  in
  let check_data e d =
    if d.number <> e.data_number || d.said <> text e.data_number then wrong e.key "other data";
    if not (List.for_all2 (fun k v -> Values.is k.kind k.id k.aux v) e.others d.values) then
      wrong e.key "other values in the data";
    List.iter (fun k -> if k.dead then wrong k "was dead, and is in some data") e.others
  in
  let check e = match get e.ephemeral with
    | None -> dead e.key; if get_key e.ephemeral <> None then wrong e.key "alive without data"; None
    | Some d -> if e.key.dead then wrong e.key "was dead, and has data"; check_data e d; Some d
  in
  let next = ref 0 in
  let new_key i =
    incr next;
    let kind = Values.mortal.(rnd (Array.length Values.mortal)) and id = (!next * 4) + rnd 4 in
    let v = Values.make kind id in
    let aux = if Values.has_cell kind then Values.custom_cell v else 0 in
    let k = { kind; id; aux; held = Some v; dead = false; mark = 0 } in
    keys.(i) <- Some k;
    k
  in
  (* A key that is held, and its value. *)
  let some_key () =
    let i = rnd (Array.length keys) in
    let k = match keys.(i) with Some ({ held = Some _; _ } as k) -> k | _ -> new_key i in
    (k, Option.get k.held)
  in
  let put i =
    let key, v = some_key () in
    let own = if rnd 3 = 0 then [ (key, v) ] else [] in
    let others = own @ List.init (rnd 3) (fun _ -> some_key ()) in
    let number = rnd 100_000 in
    let data = { number; said = text number; values = List.map snd others } in
    if rnd 3 = 0 then Gc.minor ();
    entries.(i) <-
      Some { ephemeral = create v data; key; data_number = number; others = List.map fst others;
             data = (if rnd 8 = 0 then Some data else None) };
    keep (v, data)
  in
  let remove i e =
    (match rnd 8 with
     | 0 -> delete_nolock e.ephemeral
     | 1 -> delete_elsewhere [| e.ephemeral |]
     | _ -> delete e.ephemeral);
    entries.(i) <- None
  in
  let all_dead () =
    (* what nothing keeps must be dead after a full collection *)
    collect ();
    find_living ();
    Array.iter (Option.iter (fun e ->
      let lives = e.key.mark = !search in
      if is_alive e.ephemeral <> lives then wrong e.key (if lives then "dead, and should not be" else "still alive");
      if not lives then e.key.dead <- true)) entries
  in
  while !left > 0 do
    decr left;
    let i = rnd (Array.length entries) in
    (match entries.(i), rnd 12 with
     | None, _ -> put i
     | Some e, (0 | 1 | 2) -> remove i e
     | Some e, (3 | 4 | 5) -> ignore (check e)
     | Some e, 6 -> (match get_key e.ephemeral with None -> dead e.key | Some v -> alive e.key v; keep v)
     | Some e, 7 -> (match check e with Some d when rnd 4 = 0 -> e.data <- Some d | _ -> ())
     | Some e, 8 ->
         (* a key that is held again *)
         let j = rnd (Array.length keys) in
         (match get_key e.ephemeral, keys.(j) with
          | Some _, Some { held = Some _; _ } | None, _ -> ()
          | Some v, _ -> alive e.key v; e.key.held <- Some v; keys.(j) <- Some e.key)
     | Some e, _ -> e.data <- None);
    (match keys.(rnd (Array.length keys)) with Some k when rnd 3 = 0 -> k.held <- None | _ -> ());
    match rnd 400 with
    | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 -> Gc.minor ()
    | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 -> ignore (Gc.major_slice 200)
    | 16 -> if alone && rnd 20 = 0 then all_dead () else Thread.yield ()
    | 17 -> if rnd 40 = 0 then Root.compact ()
    | 18 -> if rnd 20 = 0 then collect ()
    | _ -> ()
  done;
  if alone then all_dead ();
  Array.iteri (fun i -> Option.iter (remove i)) entries

let steps = scale 150_000

(* One in `part` of the steps. Domains wait for one another, and take long. *)
let model ~part ~domains ~threads () =
  if domains > 1 && Values.loses_arrays then skip "only the first domain makes ephemeral roots";
  let each = steps / part / threads / if domains > 1 then 4 else 1 in
  Players.all ~domains ~threads (fun n -> player ~alone:(domains = 1 && threads = 1) (Players.seed + n) each)

(* --- what ephemeral roots are for --------------------------------------------------------------------------------- *)

type handle

external handle : unit -> handle = "e_handle"
external handle_set : handle -> (unit -> int) -> bool -> unit = "e_handle_set"
external handle_call : handle -> int = "e_handle_call"
external finalised : unit -> int = "e_finalised"

(* A closure refers to the handle of an object of C, which owns the closure. The handle alone is kept. *)
let make_owner ~strong i =
  let h = handle () in
  handle_set h (fun () -> keep h; i) strong;
  if handle_call h <> i then fail "called something else";
  h

let cycles () =
  let n = 1000 in
  for i = 1 to n do keep (make_owner ~strong:true i) done;
  collect ();
  if finalised () <> 0 then fail "%d of the cycles with a root were collected" (finalised ());
  let alive = Array.init n (make_owner ~strong:false) in
  for i = 1 to n do keep (make_owner ~strong:false i) done;
  collect ();
  collect ();
  if finalised () <> n then fail "of %d without use %d were collected" n (finalised ());
  Root.compact ();
  Array.iteri (fun i h -> if handle_call h <> i then fail "closure %d" i) alive;
  keep alive;
  collect ();
  collect ();
  if finalised () <> 2 * n then fail "of %d cycles with an ephemeral root %d were collected" (2 * n) (finalised ())

(* C finalisers of keys delete ephemeral roots in the middle of sweeping and of minor collections. *)
let finaliser_deletes () =
  for round = 1 to scale 40 do
    let few = Array.init 20 (make_owner ~strong:false) in
    for i = 1 to 2000 do keep (make_owner ~strong:false i) done;
    if round mod 4 = 0 then collect () else ignore (Gc.major_slice 10_000);
    Array.iteri (fun i h -> if handle_call h <> i then fail "closure %d" i) few
  done;
  collect ();
  collect ();
  if finalised () <> scale 40 * 2020 then fail "%d finalised" (finalised ())

(* --- semantics ---------------------------------------------------------------------------------------------------- *)

let basics () =
  let k = text 1 in
  let make () = let d = ref (text 2) in (create k d, observe d) in
  let e, data = make () in
  if not (match get_key e with Some x -> x == k | None -> false) || get e <> Some (ref (text 2)) then fail "others";
  collect ();
  if not (there data) || get e <> Some (ref (text 2)) then fail "dead though the key lives";
  let e', data' = make () in
  delete e';
  collect ();
  collect ();
  if there data' then fail "the data of a deleted one lives";
  let r = Root.create k in
  keep k;
  collect ();
  if not (there data && is_alive e) then fail "dead though there is a root of the key";
  Root.delete r;
  collect ();
  collect ();
  if is_alive e || there data then fail "alive";
  delete e;
  let e = create 5 (text 1) and e0 = create (c_static ()) (text 2) and long = create (text 3) 7 in
  collect ();
  if get e <> Some (text 1) || get_key e <> Some 5 then fail "an immediate key";
  if get e0 <> Some (text 2) then fail "a static key";
  if get long <> None then fail "an immediate as data";
  List.iter delete [ e; e0; long ];
  let k = text 1 in
  let e = create k 7 in
  collect ();
  if get e <> Some 7 then fail "an immediate as data is lost";
  keep k;
  delete e;
  eperm ()

(* Every place for key and data: young, old, the same value, the data refers to the key, the key to the data. Each dies
   in a minor collection, or in a major one. *)
let places () =
  let young = 0 and old = 1 in
  List.iter (fun (key_age, data_age, shape) ->
    for round = 0 to 4 do
      let n = 300 in
      let alive = ref [] in
      let make i =
        let k = [| Obj.repr (text i); Obj.repr 0 |] in
        if key_age = old then Gc.minor ();
        let d = match shape with
          | `Apart -> [| Obj.repr (text (i + 1)) |]
          | `Same -> k
          | `Of_data -> [| Obj.repr (text (i + 1)); Obj.repr k |]
          | `Of_key -> let d = [| Obj.repr (text (i + 1)) |] in k.(1) <- Obj.repr d; d
        in
        if data_age = old && i mod 8 = 0 then Gc.minor ();
        let e = create k d in
        if i mod 3 = 0 then alive := (k, i) :: !alive;
        if i mod 50 = 49 then if round = 1 then ignore (Gc.major_slice 300) else if round > 1 then Gc.minor ();
        (e, observe k, observe d)
      in
      let all = Array.init n make in
      if round = 0 then Gc.minor ();
      if round >= 2 then collect ();
      if round = 3 then Root.compact ();
      if round = 4 then collect ();
      Array.iteri (fun i (e, k, d) ->
        match (get e : Obj.t array option) with
        | Some v ->
            let said = Obj.obj v.(0) in
            if said <> text (if shape = `Same then i else i + 1) then fail "data %d is %s" i said;
            if shape = `Of_data && Obj.obj (Obj.obj v.(1) : Obj.t array).(0) <> text i then fail "key %d in its data" i
        | None ->
            if i mod 3 = 0 then fail "%d is dead" i;
            if there k then fail "the key %d lives without its data" i;
            if there d then if round >= 2 then fail "the data %d lives without its key" i) all;
      collect ();
      collect ();
      Array.iteri (fun i (e, k, d) ->
        let right = i mod 3 = 0 in
        if is_alive e <> right || there k <> right || there d <> right then fail "%d: not %b" i right) all;
      keep !alive;
      Array.iter (fun (e, _, _) -> delete e) all
    done)
    (List.concat_map (fun shape -> [ (young, young, shape); (young, old, shape); (old, young, shape);
                                     (old, old, shape) ])
       [ `Apart; `Same; `Of_data; `Of_key ])

(* A chain, of which the first key is held: each data is the key of the next. Those without a first key die. *)
let chains () =
  let n = scale 2000 in
  let chain order =
    let keys = Array.init (n + 1) (fun i -> ref i) in
    let made = Array.map (fun i -> (i, create keys.(i) keys.(i + 1))) order in
    (keys.(0), made)
  in
  let up = Array.init n Fun.id and down = Array.init n (fun i -> n - 1 - i) in
  List.iter (fun order ->
    let first, all = chain order in
    let _, lost = chain order in
    collect ();
    Array.iter (fun (i, e) -> if get e <> Some (ref (i + 1)) then fail "link %d" i) all;
    keep first;
    collect ();
    Array.iter (fun (i, e) -> if is_alive e then fail "link %d lives" i) lost;
    collect ();
    Array.iter (fun (i, e) -> if is_alive e then fail "link %d lives after the first key" i) all;
    Array.iter (fun (_, e) -> delete e) all;
    delete_elsewhere (Array.map snd lost)) [ up; down ]

(* A key in the middle of a block of closures lives as long as the block; so may data be. *)
let infix () =
  let n = 300 in
  let make i = let v = Values.make_infix i in (create v (text i), create (text i) v, v) in
  let all = Array.init n make in
  let held = Array.map (fun (_, _, v) -> v) all in
  let all = Array.map (fun (e, e', _) -> (e, e')) all in
  let check what =
    Array.iteri (fun i (e, _) ->
      if get e <> Some (text i) then fail "%s: data %d" what i;
      match get_key e with Some v when Values.is Infix i 0 v -> () | _ -> fail "%s: key %d" what i) all
  in
  check "young";
  Gc.minor ();
  check "old";
  collect ();
  check "collected";
  Root.compact ();
  check "compacted";
  Array.iteri (fun i (_, e') -> if is_alive e' then fail "text %d" i) all;
  keep held;
  collect ();
  Array.iteri (fun i (e, _) -> if is_alive e then fail "closure %d" i) all;
  Array.iter (fun (e, e') -> delete e; delete e') all;
  let keys = Array.init n text in
  let all = Array.map (fun k -> create k (Values.make_infix (String.length k))) keys in
  Gc.minor ();
  Root.compact ();
  Array.iteri (fun i e ->
    match get e with
    | Some v when Values.is Infix (String.length keys.(i)) 0 v -> ()
    | _ -> fail "closure %d as data" i) all;
  Array.iter delete all

(* Alive with its data in its own finaliser, and afterwards not, unless that stored it; dead in that of
   Gc.finalise_last. *)
let finalisers () =
  let seen = ref 0 and stored = ref [] in
  let make i =
    let v = ref i in
    let e = create v (text i, v) in
    Gc.finalise (fun v ->
      (match get e with Some (s, x) when x == v && s = text i -> incr seen | _ -> fail "dead in its finaliser");
      if i mod 2 = 0 then stored := v :: !stored) v;
    e
  in
  let all = List.init 100 make in
  collect ();
  collect ();
  if !seen <> 100 then fail "%d finalisers" !seen;
  List.iteri (fun i e -> if is_alive e <> (i mod 2 = 0) then fail "value %d" i) all;
  keep !stored;
  List.iter delete all;
  let last = ref 0 in
  let make i =
    let v = ref i in
    let e = create v (text i) in
    Gc.finalise_last (fun () -> incr last; if get e <> None then fail "alive in the last finaliser") v;
    e
  in
  let all = List.init 100 make in
  collect ();
  if !last <> 100 then fail "%d last finalisers" !last;
  List.iter delete all

(* What was found in the middle of a cycle is whole, though the read may be all that holds it while the collector
   marks. *)
let in_the_middle () =
  let n = 2000 in
  for round = 1 to scale 60 do
    let all = Array.init n (fun i -> let k = (text i, [ text (i + 1) ]) in create k (text (i + 2), k)) in
    Gc.minor ();
    let found = Array.make n None and keys = Array.make n None in
    for i = 0 to n - 1 do
      if i mod 20 = 0 then ignore (Gc.major_slice (1 + (round * 37 mod 3000)));
      if i mod 2 = 0 then found.(i) <- get all.(i) else keys.(i) <- get_key all.(i)
    done;
    Gc.minor ();
    ignore (Gc.major_slice 100_000);
    if round mod 3 = 0 then collect ();
    Array.iteri (fun i e ->
      let key = (text i, [ text (i + 1) ]) in
      match found.(i), keys.(i) with
      | None, None -> if is_alive e then fail "value %d lives again" i
      | Some d, _ -> if d <> (text (i + 2), key) then fail "round %d: data %d" round i
      | _, Some k ->
          if k <> key then fail "round %d: key %d" round i;
          if get e <> Some (text (i + 2), key) then fail "round %d: data of %d" round i) all;
    keep (found, keys);
    Array.iter delete all
  done

(* Lazy values are refused as keys, forced or not, and are well as data. *)
let lazies () =
  let refused what l =
    let said = "boxroot_weak_create, or boxroot_ephemeral_create for a key, was called with a lazy value" in
    if raw_create l 1 <> 0 || not (String.starts_with ~prefix:said (error ())) then fail "%s: %s" what (error ())
  in
  let l = lazy (text 1 ^ "!") and f = lazy (text 2 ^ "!") in
  ignore (Lazy.force f);
  refused "young" l;
  refused "young and forced" f;
  Gc.minor ();
  refused "old" l;
  for round = 1 to scale 50 do
    let all = Array.init 500 (fun i ->
      let k = ref i in
      (k, create k (let s = text i in lazy (keep round; s ^ "!")))) in
    Array.iteri (fun i (_, e) ->
      if i mod 50 = 0 then ignore (Gc.major_slice 500);
      if i mod 2 = 0 then Option.iter (fun l -> ignore (Lazy.force l)) (get e)) all;
    if round mod 2 = 0 then collect ();
    if round mod 5 = 0 then Gc.minor ();
    Array.iteri (fun i (_, e) ->
      match get e with
      | Some l -> if Lazy.force l <> text i ^ "!" then fail "lazy %d" i
      | None -> fail "the key of lazy %d is dead" i) all;
    keep all;
    Array.iter (fun (_, e) -> delete e) all
  done

(* --- memory ------------------------------------------------------------------------------------------------------- *)

let bounded what step = rises ~steps:(scale 60) ~kb:(if is_checked () then 60_000 else 24_000) what step

(* Were nothing used again: 100 MB after 60 rounds; in pools of four, 20. *)
let many = if pool_capacity () < 100 then 8_000 else 40_000

let memory () =
  let v = text 1 in
  let some () = Array.init many (fun i -> if i mod 7 = 0 then create v (ref i) else create (ref i) (text i)) in
  bounded "in order" (fun _ -> Array.iter delete (some ()));
  bounded "in blocking sections" (fun _ -> Array.iter delete_nolock (some ()));
  bounded "on another thread" (fun _ -> delete_elsewhere (some ()));
  if Par.multicore then
    bounded "on another domain" (fun i ->
      let all = some () in
      if i mod 4 = 0 then Par.join (Par.spawn (fun () -> Array.iter delete all)) else Array.iter delete all);
  keep v

(* Many, and their number is right. *)
let large () =
  let n = scale 1_000_000 in
  let all = Array.init n (fun i -> create (if i mod 1000 = 0 then Obj.repr i else Obj.repr (ref i)) (ref i)) in
  collect ();
  let alive = Array.fold_left (fun k e -> if is_alive e then k + 1 else k) 0 all in
  if alive <> (n + 999) / 1000 then fail "%d alive" alive;
  Array.iter delete all

(* The n-th request for memory fails, which a creation can do without, or all from the n-th on. *)
let no_memory () =
  let failing = 2 and passing = 3 in
  let attempt mode n =
    let made = ref [] and failed = ref 0 in
    let make i =
      let k = text i in
      match raw_create k (ref i) with
      | 0 ->
          incr failed;
          if error () <> "no memory for more roots" then fail "said: %s" (error ());
          if !failed > 3 then disarm ()
      | e -> made := (e, i, k) :: !made
    in
    arm mode n;
    for i = 1 to 5000 do make i done;
    disarm ();
    collect ();
    List.iter (fun (e, i, k) -> if get e <> Some (ref i) then fail "value %d" i; keep k) !made;
    make 7;
    List.iter (fun (e, _, _) -> delete e) !made;
    if !failed > 0 then failing else if failures () > 0 then 0 else passing
  in
  List.iter (fun mode ->
    let codes = List.init 20 (fun n -> Process.code_of_child (fun () -> attempt mode (n + 1))) in
    let count code = List.length (List.filter (( = ) code) codes) in
    Printf.printf "%d runs in which a creation failed, %d without a failure\n%!" (count failing) (count passing);
    if mode = 2 && count failing = 0 then fail "nothing was tried") [ 1; 2 ]

(* --- domains, forks, teardown ------------------------------------------------------------------------------------- *)

(* Ephemeral roots of one domain, which others read and delete. *)
let shared () =
  if not Par.multicore then skip "one domain";
  for round = 1 to scale 12 do
    let n = 3000 in
    let keys = Array.init n (fun i -> if i mod 3 = 0 then ref i else ref 0) in
    let all = Array.init n (fun i -> create (if i mod 3 = 0 then keys.(i) else ref i) (text i, ref i)) in
    let stop = Atomic.make false in
    let look seed () =
      let rng = Random.State.make [| seed; round |] in
      while not (Atomic.get stop) do
        let i = Random.State.int rng n in
        (match get all.(i) with
         | Some (s, r) -> if s <> text i || !r <> i then fail "data %d is %s, %d" i s !r
         | None -> if i mod 3 = 0 then fail "key %d is dead" i);
        (match get_key all.(i) with
         | Some r -> if !r <> i then fail "key %d is %d" i !r
         | None -> if i mod 3 = 0 then fail "key %d is dead" i);
        if Random.State.int rng 500 = 0 then Gc.minor ();
        if Random.State.int rng 3000 = 0 then Gc.full_major ()
      done
    in
    let others = List.init 2 (fun s -> Par.spawn (look s)) in
    for _ = 1 to 30 do
      Gc.minor ();
      ignore (Gc.major_slice 3000);
      let more = Array.init 500 (fun i -> create (ref i) (ref i)) in
      Array.iter delete more;
      nap 300
    done;
    Atomic.set stop true;
    List.iter Par.join others;
    keep keys;
    let delete_from d () = Array.iteri (fun i e -> if i mod 3 = d then delete e) all in
    let others = List.init 2 (fun d -> Par.spawn (delete_from d)) in
    delete_from 2 ();
    List.iter Par.join others
  done

(* Domains that end leave ephemeral roots. *)
let ending_domains () =
  if not Par.multicore then skip "one domain";
  if Values.loses_arrays then begin
    Par.join (Par.spawn (fun () ->
      let said = "before OCaml 5.5, boxroot_weak_create and boxroot_ephemeral_create must be called on the first" in
      if raw_create 5 6 <> 0 || not (String.starts_with ~prefix:said (error ())) then fail "%s" (error ())));
    skip "only the first domain makes ephemeral roots"
  end;
  let n = 700 in
  for round = 1 to scale 300 do
    let all = Array.make n 0 and keys = Array.make n "" in
    let body () =
      for i = 0 to n - 1 do
        let k = text (round + i) in
        if i mod 2 = 0 then keys.(i) <- k;
        all.(i) <- create k (i, k)
      done;
      for i = 0 to n - 1 do if i mod 5 = 4 then delete all.(i) done;
      if round mod 3 = 0 then Gc.full_major () else ignore (Gc.major_slice (round * 100))
    in
    Par.join (Par.spawn body);
    let check () =
      for i = 0 to n - 1 do
        if i mod 5 <> 4 then
          match get all.(i) with
          | Some (j, s) -> if j <> i || s <> text (round + i) then fail "data %d" i
          | None -> if keys.(i) <> "" then fail "key %d is dead" i
      done
    in
    check ();
    ignore (Gc.major_slice 2000);
    check ();
    if round mod 5 = 0 then begin
      collect ();
      check ();
      for i = 0 to n - 1 do if i mod 2 = 1 && i mod 5 <> 4 && is_alive all.(i) then fail "%d is alive" i done
    end;
    keep keys;
    for i = 0 to n - 1 do if i mod 5 <> 4 then delete all.(i) done
  done

external cxx : int -> 'a Lazy.t -> bool -> int = "e_cxx"

let cplusplus () =
  let l = lazy (text 1) in
  let run collected = match cxx 3000 l collected with 0 -> () | wrong -> fail "%d wrong" wrong in
  run false;
  collect ();
  run true

let forked () =
  let k = text 0 in
  let all = Array.init 1000 (fun i -> if i mod 2 = 0 then create k (ref i) else create (text i) (ref i)) in
  let use () =
    collect ();
    Array.iteri (fun i e -> if get e <> (if i mod 2 = 0 then Some (ref i) else None) then fail "value %d" i) all;
    Array.iter delete all
  in
  Process.in_child use;
  Process.in_child (fun () -> delete_elsewhere all; keep (Array.init 1000 (fun i -> create i i)));
  use ();
  keep k

let torn_down () =
  let k = text 1 in
  let all = Array.init 1000 (fun i -> create k (ref i)) in
  for i = 0 to 99 do delete all.(i) done;
  Root.teardown ();
  for i = 100 to 999 do if is_alive all.(i) then fail "alive after teardown" done;
  for i = 100 to 599 do delete all.(i) done;
  if raw_create k k <> 0 || error () = "" then fail "created after teardown";
  if not (Root.setup ()) then fail "no second start";
  keep k;
  for round = 1 to 3 do
    let all = Array.init 2000 (fun i -> create i (ref (i + round))) in
    collect ();
    Array.iteri (fun i e -> if get e <> Some (ref (i + round)) then fail "value %d" i) all;
    Array.iter delete all
  done;
  Root.teardown ()

let at_shutdown () =
  let k = text 1 in
  let e = create k (text 2) in
  at_exit (fun () -> if get e <> Some (text 2) then fail "dead"; delete e; keep (create k k))

(* --- misuse ------------------------------------------------------------------------------------------------------- *)

external use_after_delete : 'a -> 'a = "e_use_after_delete"
external key_after_delete : 'a -> 'a = "e_key_after_delete"
external delete_twice : 'a -> 'a = "e_delete_twice"
external delete_twice_elsewhere : 'a -> 'a = "e_delete_twice_elsewhere"
external use_without_lock : 'a -> 'a = "e_use_without_lock"
external use_root : 'a -> 'a = "e_use_root"
external delete_null : 'a -> 'a = "e_delete_null"

let history = [ "eph.c:101"; "eph.c:102" ]

let misuses =
  [ ("get", use_after_delete, [ "boxroot_ephemeral_get: use after delete"; "eph.c:103" ] @ history);
    ("get-key", key_after_delete, [ "boxroot_ephemeral_get_key: use after delete"; "eph.c:104" ] @ history);
    ("delete-twice", delete_twice, [ "boxroot_ephemeral_delete: double delete"; "eph.c:105" ] @ history);
    ("delete-twice-elsewhere", delete_twice_elsewhere,
     [ "boxroot_ephemeral_delete: double delete"; "eph.c:105" ] @ history);
    ("no-lock", use_without_lock, [ "boxroot_ephemeral_get: use without the domain lock"; "eph.c:106" ]);
    ("root", use_root, [ "boxroot_ephemeral_get: no ephemeral root"; "eph.c:107" ]);
    ("delete-null", delete_null, [ "boxroot_ephemeral_delete"; "eph.c:108" ]) ]

let model_domains ~part () = if Par.multicore then model ~part ~domains:3 ~threads:2 () else skip "one domain"

let () =
  main ~slow:[ "model-domains-long" ]
    ([ ("model", model ~part:1 ~domains:1 ~threads:1); ("model-threads", model ~part:1 ~domains:1 ~threads:4);
       ("model-domains", model_domains ~part:8); ("model-domains-long", model_domains ~part:1);
       ("cycles", cycles); ("basics", basics); ("places", places); ("chains", chains); ("infix", infix);
       ("finalisers", finalisers); ("in-the-middle", in_the_middle); ("lazies", lazies); ("memory", memory);
       ("large", large); ("no-memory", no_memory); ("shared", shared); ("ending-domains", ending_domains);
       ("c++", cplusplus); ("forked", forked); ("finaliser-deletes", finaliser_deletes);
       ("torn-down", torn_down); ("at-shutdown", at_shutdown) ]
     @ Process.misuse_tests misuses)
