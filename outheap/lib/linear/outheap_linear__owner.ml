(* SPDX-License-Identifier: MIT *)
(* What is owned, the right to it, and the order of changes and reads. *)
module Raw = Outheap_linear__raw
module Text = Outheap_linear__contents.Text

(* What is owned. [busy]: the number of borrows; -1 while it is changed. [root] and [last] are cells, or none, and so is
   [left], between functions of this module. In whole states [size] cells lead from [root]. [more] is a block that
   cannot be marshalled, copied or compared, or begins with one, and so an owner cannot be; each has its own, since what
   is the same is not compared, and it comes first, so that nothing else is looked at before. The stubs know where the
   fields are. *)
type owner = {
  more : Obj.t;
  mutable busy : int;
  mutable version : int;
  mutable root : Raw.cell;
  mutable last : Raw.cell;
  mutable left : Raw.cell;
  mutable size : int;
  mutable flag : bool;
}
[@@warning "-69"]

(* The right to an owner, until it is given up: [version] is the owner's. *)
type right = { owner : owner; version : int }

(* These are atomic, so that two domains that use an owner at the same time are told so. 0: done, 1: it was consumed,
   2: it is in use. *)
external begin_change : owner -> int -> int = "outheap_linear_ml_begin_change" [@@noalloc]

(* The end of a change. The rights to the owner are void then, or stay valid. *)
external consume : owner -> unit = "outheap_linear_ml_consume" [@@noalloc]
external kept : owner -> unit = "outheap_linear_ml_kept" [@@noalloc]
external begin_reading : owner -> int -> int = "outheap_linear_ml_begin_reading" [@@noalloc]
external end_reading : owner -> unit = "outheap_linear_ml_end_reading" [@@noalloc]
external mark : unit -> Obj.t = "outheap_linear_ml_mark"

let[@inline never] refused why = raise (if why = 1 then Raw.Moved else Raw.Borrowed)

(* The owner, to be changed. *)
let[@inline] change r =
  let o = r.owner in
  let why = begin_change o r.version in
  if why <> 0 then refused why;
  o

let[@inline] right_of o : right = { owner = o; version = o.version }

(* The right that a change of [r] leads to, valid when [r] is consumed. It is made before the change: between what
   changes and what is returned nothing is allocated and no signal handled, so that a handler that raises cannot come
   between a right that was consumed and the program that gets the new one. *)
let[@inline] next r : right = Sys.opaque_identity { owner = r.owner; version = r.version + 1 }

(* Consumes, and returns that. *)
external done_ : owner -> right -> right = "outheap_linear_ml_done" [@@noalloc]

let failed o e =
  kept o;
  let trace = Printexc.get_raw_backtrace () in
  Printexc.raise_with_backtrace e trace

(* Raises [Stack_overflow] if there is no room for what [finish] calls, which cannot be left half done. *)
let[@inline never] room ?(frames = 32) () =
  let rec go n = if n = 0 then 0 else 1 + go (n - 1) in
  ignore (Sys.opaque_identity (go frames))

(* Ends a change by [free], which can be stopped in the middle, by a signal handler that raises, and goes on when it is
   called again. The exception passes when all is done. *)
let rec finish free ~consumed o =
  match free o with
  | () -> if consumed then consume o else kept o
  | exception e ->
      let trace = Printexc.get_raw_backtrace () in
      finish free ~consumed o;
      Printexc.raise_with_backtrace e trace

let[@inline] read r =
  let o = r.owner in
  let why = begin_reading o r.version in
  if why <> 0 then refused why;
  o

let read_fails o e =
  end_reading o;
  let trace = Printexc.get_raw_backtrace () in
  Printexc.raise_with_backtrace e trace

(* Not inlined, so that what [f] reads it has read when it returns. *)
let[@inline never] borrowing r f =
  let o = read r in
  match f o with
  | result ->
      end_reading o;
      result
  | exception e -> read_fails o e

let length r =
  let o = r.owner in
  if o.version <> r.version then raise Raw.Moved;
  o.size

(* The finaliser of owners that are freed by [free]. The program may get at an owner afterwards: through a weak pointer,
   or in a finaliser of its own that comes later; for it the owner is consumed then. One that is in use, by a finaliser
   that another domain runs, is left for when it is forgotten again; so it is where the stack ends. *)
let rec forgotten free owner =
  match room () with
  | () ->
      if begin_change owner owner.version = 0 then finish free ~consumed:true owner
      else Gc.finalise (forgotten free) owner
  | exception Stack_overflow -> Gc.finalise (forgotten free) owner

(* All owners of a functor, so that what they own can be moved. When there are twice as many as were left before, those
   that were forgotten are left out. *)
module Owners = struct
  type known = { owners : owner Weak.t list; count : int; most : int }
  type t = { known : known Atomic.t; kind : int }

  external move_from : owner -> int -> int -> int = "outheap_linear_ml_move" [@@noalloc]

  let chain = 0
  let tree = 1
  let table = 2
  let least = 16

  let move t =
    let rec move_all from o = if from >= 0 then move_all (move_from o t.kind from) o in
    List.iter (fun w -> Option.iter (move_all 0) (Weak.get w 0)) (Atomic.get t.known).owners

  let create kind ~plain =
    let t = { known = Atomic.make { owners = []; count = 0; most = least }; kind } in
    if not plain then Text.moved_by (fun () -> move t);
    t

  let without_forgotten k =
    let owners = List.filter (fun w -> Weak.check w 0) k.owners in
    let count = List.length owners in
    { owners; count; most = max least (2 * count) }

  let add t owner =
    let w = Weak.create 1 in
    Weak.set w 0 (Some owner);
    let rec add_to before =
      let k = if before.count < before.most then before else without_forgotten before in
      let after = { k with owners = w :: k.owners; count = k.count + 1 } in
      if not (Atomic.compare_and_set t.known before after) then add_to (Atomic.get t.known)
    in
    add_to (Atomic.get t.known)

  let trim t pool = Raw.gather ~thin:(Raw.thin pool) ~move:(fun () -> move t) (fun () -> Raw.trim pool)
end

let owner_with more free =
  let none = Raw.none in
  let owner = { more; busy = 0; version = 0; root = none; last = none; left = none; size = 0; flag = false } in
  Gc.finalise free owner;
  owner

let owner_of owners free =
  let owner = owner_with (mark ()) free in
  Owners.add owners owner;
  right_of owner

let clear o =
  o.root <- Raw.none;
  o.last <- Raw.none;
  o.size <- 0

(* What lists, queues and maps have in common. *)
module Container (C : sig
  val kind : int
  val pool : Raw.pool
  val plain : bool

  (* Empties the container. *)
  val free_all : owner -> unit
end) =
struct
  let owners = Owners.create C.kind ~plain:C.plain
  let finaliser = forgotten C.free_all
  let create () = owner_of owners finaliser
  let length = length
  let borrow r f = borrowing r (fun o -> f (Raw.to_view o.root))

  let close r =
    room ();
    finish C.free_all ~consumed:true (change r)

  let live () = Raw.used C.pool
  let memory () = Raw.bytes C.pool
  let trim () = Owners.trim owners C.pool
  let check () = Raw.check C.pool
end
