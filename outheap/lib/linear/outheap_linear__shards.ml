(* SPDX-License-Identifier: MIT *)
(* Tables in parts, with one lock each. *)
open Outheap_linear__owner
module Raw = Outheap_linear__raw

(* What several domains and threads use in turn. A thread that waits lets others of its domain run. The first two return
   0 when the lock was taken. *)
type lock

external lock_new : unit -> lock = "outheap_linear_ml_lock_new"
external lock_try : lock -> int = "outheap_linear_ml_lock_try" [@@noalloc]
external lock_wait : lock -> int = "outheap_linear_ml_lock_wait"
external lock_give : lock -> unit = "outheap_linear_ml_lock_give" [@@noalloc]
external lock_is_ours : lock -> bool = "outheap_linear_ml_lock_is_ours" [@@noalloc]
external locks_give : lock array -> int -> unit = "outheap_linear_ml_locks_give" [@@noalloc]

(* A thread that has the lock is refused. No signal is handled between the taking and the return. *)
let[@inline] lock_take l = if lock_try l <> 0 && lock_wait l <> 0 then raise Raw.Borrowed

(* What had to go in a call. Storing it here allocates nothing, so that no signal is handled in between. *)
type gone = { mutable is : bool; mutable a : Obj.t; mutable z : Obj.t }
type shard = { lock : lock; table : owner; gone : gone ref (* of the call that has the lock *) }

(* [mark]: as that of owners. *)
type ('k, 'v) t = { mark : Obj.t; shards : shard array; evicted : ('k -> 'v -> unit) option } [@@warning "-69"]

let most_shards = 4096
let nothing_gone () = { is = false; a = Obj.repr 0; z = Obj.repr 0 }

(* [create]: a table. *)
let create create ~shards ~most evicted : ('k, 'v) t =
  if shards < 1 || shards > most_shards then invalid_arg "Outheap_linear.Table.Sharded.create: 1 to 4096 shards";
  if most < 1 then invalid_arg "Outheap_linear.Table.Sharded.create: room for no element";
  let rec power n = if n >= shards || 2 * n > most then n else power (2 * n) in
  let n = power 1 in
  let shard i =
    let most = if most = max_int then most else (most / n) + if i < most mod n then 1 else 0 in
    let gone = ref (nothing_gone ()) in
    let keep _ (a : 'k) (z : 'v) =
      let g = !gone in
      g.a <- Obj.repr a;
      g.z <- Obj.repr z;
      g.is <- true
    in
    { lock = lock_new (); table = create ~most (Option.map keep evicted); gone }
  in
  { mark = mark (); shards = Array.init n shard; evicted }

(* By high bits of the hash: buckets go by the low ones. *)
let[@inline] shard t hash = Array.unsafe_get t.shards ((hash lsr 34) land (Array.length t.shards - 1))

(* Not inlined: what [f] needs is allocated before the lock is taken. Between that and what gives it, no signal is
   handled. *)
let[@inline never] locked s f =
  lock_take s.lock;
  match f s.table with
  | result ->
      lock_give s.lock;
      result
  | exception e ->
      lock_give s.lock;
      let trace = Printexc.get_raw_backtrace () in
      Printexc.raise_with_backtrace e trace

(* Inlined, for a function that ends by calling another may handle signals when it begins. *)
let[@inline] hand_on_kept gone (evicted : 'k -> 'v -> unit) =
  if gone.is then begin
    let a : 'k = Obj.obj gone.a and z : 'v = Obj.obj gone.z in
    gone.is <- false;
    gone.a <- Obj.repr 0;
    gone.z <- Obj.repr 0;
    evicted a z
  end

(* [f] may put an element into the table; what goes for that is handed on without the lock, also where an exception
   comes after it has gone. *)
let evicting t s f =
  match t.evicted with
  | None -> locked s f
  | Some evicted -> (
      let gone = nothing_gone () in
      match locked s (fun table -> s.gone := gone; f table) with
      | () -> hand_on_kept gone evicted
      | exception e ->
          let trace = Printexc.get_raw_backtrace () in
          hand_on_kept gone evicted;
          Printexc.raise_with_backtrace e trace)

let sum f t = Array.fold_left (fun n s -> n + f s.table) 0 t.shards
let fold f t acc = Array.fold_left (fun acc s -> locked s (fun table -> f table acc)) acc t.shards
let iter f t = Array.iter (fun s -> locked s f) t.shards

(* Parts that an interrupted call has closed are passed over. *)
let close close t =
  let close_part open_before s = match locked s close with () -> true | exception Raw.Moved -> open_before in
  if not (Array.fold_left close_part false t.shards) then raise Raw.Moved

(* [f], of all tables, with all locks. They are taken in the order of the parts, by all that take more than one; a
   thread that has one already is refused before it waits. Between the taking of one and its being counted, and between
   the end of [f] and the giving, no signal is handled. *)
let[@inline never] all_locked t f =
  let locks = Array.map (fun s -> s.lock) t.shards and taken = ref 0 in
  if Array.exists lock_is_ours locks then raise Raw.Borrowed;
  match
    for i = 0 to Array.length locks - 1 do
      lock_take (Array.unsafe_get locks i);
      taken := i + 1
    done;
    f (Array.fold_right (fun s tables -> s.table :: tables) t.shards [])
  with
  | result ->
      locks_give locks !taken;
      result
  | exception e ->
      locks_give locks !taken;
      let trace = Printexc.get_raw_backtrace () in
      Printexc.raise_with_backtrace e trace
