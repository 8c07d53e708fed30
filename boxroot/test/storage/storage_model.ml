(* SPDX-License-Identifier: MIT *)
(* Storages against a model: random operations on several of them, by threads and domains. *)

open Root
open Storage_common

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
