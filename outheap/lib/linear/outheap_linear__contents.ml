(* SPDX-License-Identifier: MIT *)
(* What cells hold: values as they are, numbers of slots in the heap, and texts. *)
module Raw = Outheap_linear__raw

(* Values of these regions lie in cells. *)
let held = Atomic.make []

let hold root =
  let v = Obj.repr (Outheap_region.get root) in
  if Obj.is_block v then begin
    let rec keep () =
      let before = Atomic.get held in
      if not (List.memq v before || Atomic.compare_and_set held before (v :: before)) then keep ()
    in
    keep ();
    ignore (Raw.hold v)
  end

module type TYPE = sig
  type t
end

(* [peek] is [get], but for what is borrowed: for functions of the user that compare. *)
type ('a, 's) storage = { plain : bool; store : 'a -> 's; get : 's -> 'a; peek : 's -> 'a; free : 's -> unit }

module type STORED = sig
  type t
  type stored

  val storage : (t, stored) storage
end

(* A new cell with a key and what it has, in two fields from [at] on. *)
let new_pair k v pool shape ~at key value =
  let a = k.store key in
  match v.store value with
  | exception e ->
      k.free a;
      raise e
  | z ->
      let c = Raw.fresh pool shape in
      if Raw.is_none c then begin
        k.free a;
        v.free z;
        raise Out_of_memory
      end;
      Array.unsafe_set (Raw.words c) at (Obj.magic a : int);
      Array.unsafe_set (Raw.words c) (at + 1) (Obj.magic z : int);
      c

let refuse () =
  invalid_arg
    "Outheap_linear: a value of the heap: Plain holds immediates, constants of the program, and values of regions that \
     are held"

module Plain (T : TYPE) = struct
  type t = T.t
  type stored = T.t

  let get v = v
  let store v = if Obj.is_int (Obj.repr v) || Raw.is_plain v then v else refuse ()
  let storage = { plain = true; store; get; peek = get; free = ignore }
end

(* In slots that hold no value. A constant, so that the collector has little to do. *)
let nothing = Obj.repr "Outheap_linear: no value"

module Rooted (T : TYPE) () = struct
  type t = T.t
  type stored = int

  let bits = 10
  let size = 1 lsl bits
  let numbers = Raw.slots ()

  (* Slot n is in chunk n / size. Chunks do not move, so that slots can be used while there are more and more. *)
  let chunks : Obj.t array array Atomic.t = Atomic.make [||]

  let rec chunk n =
    let all = Atomic.get chunks in
    let c = n lsr bits in
    if c < Array.length all && Array.length all.(c) <> 0 then all.(c)
    else begin
      let length = if c < Array.length all then Array.length all else (2 * c) + 8 in
      let more = Array.init length (fun i -> if i < Array.length all then all.(i) else [||]) in
      more.(c) <- Array.make size nothing;
      ignore (Atomic.compare_and_set chunks all more);
      chunk n
    end

  let store v =
    let n = Raw.slot_take numbers in
    if n < 0 then raise Out_of_memory;
    (match chunk n with
    | c -> Array.unsafe_set c (n land (size - 1)) (Obj.repr v)
    | exception e ->
        Raw.slot_give numbers n;
        raise e);
    n

  let[@inline] value_in chunk n : t =
    let v = Array.unsafe_get chunk (n land (size - 1)) in
    if v == nothing then raise Raw.Moved else Obj.obj v

  (* Of a number that was given out, as those in cells were. *)
  let peek n = value_in (Array.unsafe_get (Atomic.get chunks) (n lsr bits)) n

  (* Chunks stay, so the slot of a stale number is there, too; a value that is none of [t] never leaves it. The
     number may be of another process, by way of a file. *)
  let get n =
    let all = Atomic.get chunks in
    let c = n lsr bits in
    if c >= Array.length all then raise Raw.Moved;
    let chunk = Array.unsafe_get all c in
    if Array.length chunk = 0 then raise Raw.Moved else value_in chunk n

  (* The number is given back when nothing is in the slot any more. *)
  let free n =
    Array.unsafe_set (Array.unsafe_get (Atomic.get chunks) (n lsr bits)) (n land (size - 1)) nothing;
    Raw.slot_give numbers n

  let storage = { plain = false; store; get = peek; peek; free }
end

module Text = struct
  type t = string

  module Long = Rooted (String) ()

  (* A cell, or, for what no cell has room for, the number of a slot. *)
  type stored = Obj.t

  let longest = 495

  let store s =
    if String.length s > longest then Obj.repr (Long.store s)
    else
      let c = Raw.text_new s in
      if Raw.is_none c then raise Out_of_memory else Raw.to_view c

  let peek (s : stored) : string = if Obj.is_int s then Long.get (Obj.obj s) else Obj.obj s
  let get (s : stored) : string = if Obj.is_int s then Long.get (Obj.obj s) else Raw.text_copy (Obj.obj s)
  let free (s : stored) = if Obj.is_int s then Long.free (Obj.obj s) else Raw.text_free (Obj.magic s : Raw.cell)
  let storage = { plain = false; store; get; peek; free }

  (* For the program, whose text may be stale: poison takes the tag of strings away. *)
  let there (s : stored) =
    if Obj.is_block s && Char.code (Raw.byte (Obj.magic s : Raw.cell) (-8)) <> Obj.string_tag then raise Raw.Moved;
    s

  let get s = get (there s)
  let peek s = peek (there s)
  let live () = Raw.Group.sum (Raw.texts ()) Raw.used
  let memory () = Raw.Group.sum (Raw.texts ()) Raw.bytes
  let check () = Raw.Group.check (Raw.texts ())

  (* What moves the texts of the containers of each functor. *)
  let movers : (unit -> unit) list Atomic.t = Atomic.make []

  let rec moved_by f =
    let before = Atomic.get movers in
    if not (Atomic.compare_and_set movers before (f :: before)) then moved_by f

  let trim () =
    let thin = Raw.Group.sum (Raw.texts ()) (fun p -> Bool.to_int (Raw.thin p)) > 0 in
    let move () = Stdlib.List.iter (fun move -> move ()) (Atomic.get movers) in
    Raw.gather ~thin ~move (fun () -> Raw.Group.sum (Raw.texts ()) Raw.trim)
end

module type CODE = sig
  type t

  val encode : t -> string
  val decode : string -> t
end

module Coded (C : CODE) = struct
  type t = C.t
  type stored = Text.stored

  let text = Text.storage
  let get s = C.decode (Text.get s)
  let read s = C.decode (text.get s)
  let storage = { plain = false; store = (fun v -> text.store (C.encode v)); get = read; peek = read; free = text.free }
end

(* Texts of eight bytes, read without a copy. *)
module Eight (N : sig
  type t

  val bits : t -> int64
  val of_bits : int64 -> t
end) =
struct
  type t = N.t
  type stored = Text.stored

  let text = Text.storage

  let store n =
    let b = Bytes.create 8 in
    Bytes.set_int64_ne b 0 (N.bits n);
    text.store (Bytes.unsafe_to_string b)

  let read s = N.of_bits (String.get_int64_ne (text.peek s) 0)

  (* Where a stale one was, there may be a shorter text by now. *)
  let get s = if String.length (Text.peek s) < 8 then raise Raw.Moved else read s
  let storage = { plain = false; store; get = read; peek = read; free = text.free }
end

module Float = Eight (struct
  type t = float

  let bits = Int64.bits_of_float
  let of_bits = Int64.float_of_bits
end)

module Int64 = Eight (struct
  type t = int64

  let bits n = n
  let of_bits n = n
end)
