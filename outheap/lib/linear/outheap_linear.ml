(* SPDX-License-Identifier: MIT *)
exception Moved
exception Borrowed

let () = Callback.register_exception "Outheap_linear.Moved" Moved

module Raw = struct
  (* What lies outside the heap is read and written here as arrays of immediates: without the barrier, and by loads that
     the compiler does not move over stores, as it may move those of the fields of constructors. All that is stored are
     immediates and pointers to what the collector does not move. *)
  type pool = int
  type cell = int

  external start : unit -> unit = "outheap_linear_ml_start"
  (* [within]: a free cell may be written to, as nobody reads one. *)
  external pool : int -> within:bool -> pool = "outheap_linear_ml_pool"
  external fresh : pool -> int -> cell = "outheap_linear_ml_new" [@@noalloc]
  external free : pool -> cell -> unit = "outheap_linear_ml_free" [@@noalloc]
  external free_chain : pool -> cell -> int -> unit = "outheap_linear_ml_free_chain" [@@noalloc]
  external free_tree : pool -> cell -> int -> int -> unit = "outheap_linear_ml_free_tree" [@@noalloc]
  external reverse : cell -> cell -> cell = "outheap_linear_ml_reverse" [@@noalloc]
  external last : cell -> cell = "outheap_linear_ml_last" [@@noalloc]
  external read_out : cell -> int array -> unit = "outheap_linear_ml_read_out" [@@noalloc]
  external write_back : cell -> int array -> int -> unit = "outheap_linear_ml_write_back" [@@noalloc]
  external is_plain : 'a -> bool = "outheap_linear_ml_is_plain" [@@noalloc]
  external hold : 'a -> bool = "outheap_linear_ml_hold"
  external used : pool -> int = "outheap_linear_ml_used" [@@noalloc]
  external bytes : pool -> int = "outheap_linear_ml_bytes" [@@noalloc]
  external trim : pool -> int = "outheap_linear_ml_trim" [@@noalloc]
  external thin : pool -> bool = "outheap_linear_ml_thin" [@@noalloc]
  external poison : bool -> unit = "outheap_linear_ml_poison" [@@noalloc]
  external check : pool -> string = "outheap_linear_ml_check"
  external group : unit -> int = "outheap_linear_ml_group"
  external next : int -> pool -> pool = "outheap_linear_ml_next" [@@noalloc]
  external make : int -> 'a -> Obj.t = "outheap_linear_ml_make" [@@noalloc]
  external take : int -> 'a -> int = "outheap_linear_ml_take" [@@noalloc]
  external untake : int -> unit = "outheap_linear_ml_untake" [@@noalloc]
  external put : int -> int -> 'a -> Obj.t = "outheap_linear_ml_put" [@@noalloc]
  external drop : int -> int -> int = "outheap_linear_ml_drop" [@@noalloc]
  external is_ordinary : 'a -> bool = "outheap_linear_ml_is_ordinary" [@@noalloc]
  external texts : unit -> int = "outheap_linear_ml_texts" [@@noalloc]
  external text_new : string -> cell = "outheap_linear_ml_text_new" [@@noalloc]
  external text_free : cell -> unit = "outheap_linear_ml_text_free" [@@noalloc]
  external text_copy : string -> string = "outheap_linear_ml_text_copy"
  (* [first]: the first ones of a table. *)
  external buckets_resize : int -> words:int -> first:bool -> int = "outheap_linear_ml_buckets_resize" [@@noalloc]
  external buckets_free : int -> first:bool -> unit = "outheap_linear_ml_buckets_free" [@@noalloc]
  external array_at : int -> int array = "%int_as_pointer"

  (* Of a table: buckets are addresses, as immediates. Moves the cells of one whose hash ends in [n] to another; takes
     a cell out. In C, so that no signal is handled in between. *)
  external divide : from:int -> into:int -> mask:int -> n:int -> unit = "outheap_linear_ml_divide" [@@noalloc]
  external unchain : int -> cell -> unit = "outheap_linear_ml_unchain" [@@noalloc]
  external slots : unit -> int = "outheap_linear_ml_slots"
  external slot_take : int -> int = "outheap_linear_ml_slot_take" [@@noalloc]
  external slot_give : int -> int -> unit = "outheap_linear_ml_slot_give" [@@noalloc]
  external byte : cell -> int -> char = "%bytes_unsafe_get"
  external set_byte : cell -> int -> char -> unit = "%bytes_unsafe_set"

  let none : cell = 0
  let[@inline] is_none (c : cell) = c == none
  let[@inline] get (c : cell) i : cell = Array.unsafe_get (Obj.magic c : int array) i
  let[@inline] set (c : cell) i (v : cell) = Array.unsafe_set (Obj.magic c : int array) i v
  let[@inline] tag c = Char.code (byte c (-8))
  let[@inline] set_tag c t = set_byte c (-8) (Char.unsafe_chr t)
  let[@inline] to_view (c : cell) : 'a = Sys.opaque_identity (Obj.magic c)
end

let () = Raw.start ()
let poison = Raw.poison

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

(* --- contents ----------------------------------------------------------------------------------------------------- *)

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

let refuse () =
  invalid_arg
    "Outheap_linear: a value of the heap: Plain holds immediates, constants of the program, and values of regions that \
     are held"

module Plain (T : TYPE) = struct
  type t = T.t
  type stored = T.t

  let get v = v
  let storage =
    { plain = true; store = (fun v -> if Raw.is_plain v then v else refuse ()); get; peek = get; free = ignore }
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
    if v == nothing then raise Moved else Obj.obj v

  (* Of a number that was given out. *)
  let peek n = value_in (Array.unsafe_get (Atomic.get chunks) (n lsr bits)) n

  (* Chunks stay, so the slot of a stale number is there, too; a value that is none of [t] never leaves it. The
     number may be of another process, by way of a file. *)
  let get n =
    let all = Atomic.get chunks in
    let c = n lsr bits in
    if c >= Array.length all then raise Moved;
    let chunk = Array.unsafe_get all c in
    if Array.length chunk = 0 then raise Moved else value_in chunk n

  (* The number is given back when nothing is in the slot any more. *)
  let free n =
    Array.unsafe_set (Array.unsafe_get (Atomic.get chunks) (n lsr bits)) (n land (size - 1)) nothing;
    Raw.slot_give numbers n

  let storage = { plain = false; store; get; peek; free }
end

(* Of the pools of a group. *)
module Group = struct
  let sum group f =
    let rec go pool sum = if pool = 0 then sum else go (Raw.next group pool) (sum + f pool) in
    go (Raw.next group 0) 0

  let check group =
    let rec go pool = if pool = 0 then "" else match Raw.check pool with "" -> go (Raw.next group pool) | w -> w in
    go (Raw.next group 0)
end

(* Moves what is in thin pages together, and gives back the pages that this leaves. *)
let gather ~thin ~move trim =
  match if thin then move () with
  | () -> trim ()
  | exception e ->
      let trace = Printexc.get_raw_backtrace () in
      ignore (trim ());
      Printexc.raise_with_backtrace e trace

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
    if Obj.is_block s && Raw.tag (Obj.magic s : Raw.cell) <> Obj.string_tag then raise Moved;
    s

  let get s = get (there s)
  let peek s = peek (there s)
  let live () = Group.sum (Raw.texts ()) Raw.used
  let memory () = Group.sum (Raw.texts ()) Raw.bytes
  let check () = Group.check (Raw.texts ())

  (* What moves the texts of the containers of each functor. *)
  let movers : (unit -> unit) list Atomic.t = Atomic.make []

  let rec moved_by f =
    let before = Atomic.get movers in
    if not (Atomic.compare_and_set movers before (f :: before)) then moved_by f

  let trim () =
    let thin = Group.sum (Raw.texts ()) (fun p -> Bool.to_int (Raw.thin p)) > 0 in
    let move () = Stdlib.List.iter (fun move -> move ()) (Atomic.get movers) in
    gather ~thin ~move (fun () -> Group.sum (Raw.texts ()) Raw.trim)
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
  let get s = if String.length (Text.peek s) < 8 then raise Moved else read s
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

(* --- owners ------------------------------------------------------------------------------------------------------- *)

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
external end_change : owner -> int -> unit = "outheap_linear_ml_end_change" [@@noalloc]
external begin_reading : owner -> int -> int = "outheap_linear_ml_begin_reading" [@@noalloc]
external end_reading : owner -> unit = "outheap_linear_ml_end_reading" [@@noalloc]
external mark : unit -> Obj.t = "outheap_linear_ml_mark"

let[@inline never] refused why = raise (if why = 1 then Moved else Borrowed)

(* The owner, to be changed; one of the next three ends that. *)
let[@inline] change r =
  let o = r.owner in
  let why = begin_change o r.version in
  if why <> 0 then refused why;
  o

let[@inline] right_of o : right = { owner = o; version = o.version }
let[@inline] consume o = end_change o 1

(* The right that a change of [r] leads to, valid when [r] is consumed. It is made before the change: between what
   changes and what is returned nothing is allocated and no signal handled, so that a handler that raises cannot come
   between a right that was consumed and the program that gets the new one. *)
let[@inline] next r : right = Sys.opaque_identity { owner = r.owner; version = r.version + 1 }

let[@inline] done_ o next =
  consume o;
  next

(* The right stays valid. *)
let[@inline] kept o = end_change o 0

let failed o e =
  kept o;
  let trace = Printexc.get_raw_backtrace () in
  Printexc.raise_with_backtrace e trace

(* Raises [Stack_overflow] if there is no room for what [finish] calls, which cannot be left half done. *)
let[@inline never] room () =
  let rec go n = if n = 0 then 0 else 1 + go (n - 1) in
  ignore (Sys.opaque_identity (go 32))

(* Ends a change by [free], which can be stopped in the middle, by a signal handler that raises, and goes on when it is
   called again. The exception passes when all is done; then [consumed] is added to the version. *)
let rec finish free consumed o =
  match free o with
  | () -> end_change o consumed
  | exception e ->
      let trace = Printexc.get_raw_backtrace () in
      finish free consumed o;
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
  if o.version <> r.version then raise Moved;
  o.size

(* The finaliser of owners that are freed by [free]. The program may get at an owner afterwards: through a weak pointer,
   or in a finaliser of its own that comes later; for it the owner is consumed then. One that is in use, by a finaliser
   that another domain runs, is left for when it is forgotten again; so it is where the stack ends. *)
let rec forgotten free owner =
  match room () with
  | () -> if begin_change owner owner.version = 0 then finish free 1 owner else Gc.finalise (forgotten free) owner
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
    Stdlib.List.iter (fun w -> Option.iter (move_all 0) (Weak.get w 0)) (Atomic.get t.known).owners

  let create kind ~plain =
    let t = { known = Atomic.make { owners = []; count = 0; most = least }; kind } in
    if not plain then Text.moved_by (fun () -> move t);
    t

  let without_forgotten k =
    let owners = Stdlib.List.filter (fun w -> Weak.check w 0) k.owners in
    let count = Stdlib.List.length owners in
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

  let trim t pool = gather ~thin:(Raw.thin pool) ~move:(fun () -> move t) (fun () -> Raw.trim pool)
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
let[@inline] lock_take l = if lock_try l <> 0 && lock_wait l <> 0 then raise Borrowed

let clear o =
  o.root <- Raw.none;
  o.last <- Raw.none;
  o.size <- 0

(* --- lists -------------------------------------------------------------------------------------------------------- *)

(* Cells of lists and queues: constructors of 'a list. *)
module Chain (X : STORED) () = struct
  type view = X.stored list

  let { plain; store; get; peek; free } = X.storage

  let pool = Raw.pool 2 ~within:false
  let cons_shape = (2 lsl 8) lor 0
  let[@inline] head c : X.stored = Obj.magic (Raw.get c 0 : int)
  let[@inline] tail c = Raw.get c 1
  let[@inline] set_head c (v : X.stored) = Raw.set c 0 (Obj.magic v : int)
  let[@inline] set_tail c l = Raw.set c 1 l

  let[@inline] cell (v : X.stored) tl =
    let c = Raw.fresh pool cons_shape in
    if Raw.is_none c then begin
      free v;
      raise Out_of_memory
    end;
    set_head c v;
    set_tail c tl;
    c

  (* Without its contents. *)
  let drop_first o =
    let c = o.root in
    let rest = tail c in
    o.root <- rest;
    if Raw.is_none rest then o.last <- Raw.none;
    o.size <- o.size - 1;
    Raw.free pool c

  let free_all o =
    if plain then begin
      let c = o.root in
      clear o;
      Raw.free_chain pool c 1
    end
    else
      while not (Raw.is_none o.root) do
        let v = head o.root in
        drop_first o;
        free v
      done

  let finaliser = forgotten free_all
  let owners = Owners.create Owners.chain ~plain
  let create () = owner_of owners finaliser
  let length = length
  let borrow r (f : view -> 'a) = borrowing r (fun o -> f (Raw.to_view o.root))

  let close r =
    room ();
    finish free_all 1 (change r)

  let fold f acc r =
    borrowing r (fun o ->
        let rec go acc c = if Raw.is_none c then acc else go (f acc (get (head c))) (tail c) in
        go acc o.root)

  let iter f r = fold (fun () v -> f v) () r
  let iteri f r = ignore (fold (fun i v -> f i v; i + 1) 0 r)

  let find p r =
    borrowing r (fun o ->
        let rec go c =
          if Raw.is_none c then None
          else
            let v = get (head c) in
            if p v then Some v else go (tail c)
        in
        go o.root)

  let exists p r = Option.is_some (find p r)
  let for_all p r = not (exists (fun v -> not (p v)) r)
  let to_list r = List.rev (fold (fun acc v -> v :: acc) [] r)
  let to_seq r = List.to_seq (to_list r)
  let live () = Raw.used pool
  let memory () = Raw.bytes pool
  let trim () = Owners.trim owners pool
  let check () = Raw.check pool
end

module List = struct
  module Make (X : STORED) () = struct
    include Chain (X) ()

    type t = right

    let cons v r =
      let next = next r in
      let o = change r in
      match cell (store v) o.root with
      | c ->
          o.root <- c;
          o.size <- o.size + 1;
          done_ o next
      | exception e -> failed o e

    let uncons r =
      let next = next r in
      let o = change r in
      if Raw.is_none o.root then begin
        kept o;
        None
      end
      else
        match Some (get (head o.root), next) with
        | result ->
            let v = head o.root in
            drop_first o;
            free v;
            consume o;
            result
        | exception e -> failed o e

    let of_list l =
      let r = create () in
      let rec add r = function [] -> r | v :: rest -> add (cons v r) rest in
      let r = add r (List.rev l) in
      r

    let of_seq s = of_list (Stdlib.List.of_seq s)

    let rev r =
      let next = next r in
      let o = change r in
      o.root <- Raw.reverse o.root Raw.none;
      done_ o next

    (* Moves the cells of [o'] out of it. *)
    let[@inline] take_all o' =
      let c = o'.root in
      clear o';
      consume o';
      c

    let append r r' =
      let next = next r in
      let o = change r in
      match change r' with
      | o' ->
          o.size <- o.size + o'.size;
          if Raw.is_none o.root then o.root <- take_all o' else Raw.set (Raw.last o.root) 1 (take_all o');
          done_ o next
      | exception e -> failed o e

    let rev_append r r' =
      let next = next r in
      let o = change r in
      match change r' with
      | o' ->
          o.size <- o.size + o'.size;
          o.root <- Raw.reverse o.root (take_all o');
          done_ o next
      | exception e -> failed o e

    (* Functions that are made here are made where exceptions end the change: memory for them may be taken in a signal
       handler's turn. *)
    let map f r =
      let next = next r in
      let o = change r in
      match
        let rec go c =
          if not (Raw.is_none c) then begin
            let before = head c in
            let after = store (f (get before)) in
            set_head c after;
            free before;
            go (tail c)
          end
        in
        go o.root
      with
      | () -> done_ o next
      | exception e -> failed o e

    let filter p r =
      let next = next r in
      let o = change r in
      match
        (* [before] is the cell in front of [c], which stays; none at the beginning. *)
        let rec go before c =
          if not (Raw.is_none c) then
            if p (get (head c)) then go c (tail c)
            else begin
              let next = tail c and v = head c in
              if Raw.is_none before then o.root <- next else set_tail before next;
              o.size <- o.size - 1;
              Raw.free pool c;
              free v;
              go before next
            end
        in
        go Raw.none o.root
      with
      | () -> done_ o next
      | exception e -> failed o e

    (* Moves contents, not cells, which stay in the order of their addresses as far as they were. Up to [seen], which
       are [number], contents of the first list are in the first cells, before [free], and the others' in [aside].
       [last]: the cell before [free]. *)
    let partition p r =
      let others = create () in
      let result = Sys.opaque_identity (next r, others) in
      let aside : int array ref = ref [||] in
      let o = change r in
      let o' = change others in
      let seen = ref o.root and free = ref o.root and last = ref Raw.none and number = ref 0 in
      match
        aside := Array.make o.size 0;
        while not (Raw.is_none !seen) do
          let c = !seen in
          let first = p (get (head c)) in
          let v = Raw.get c 0 in
          seen := tail c;
          if first then begin
            let to_ = !free in
            Raw.set to_ 0 v;
            last := to_;
            free := tail to_
          end
          else begin
            Array.unsafe_set !aside !number v;
            incr number
          end
        done
      with
      | () ->
          Raw.write_back !free !aside !number;
          o'.root <- !free;
          o'.size <- !number;
          o.size <- o.size - !number;
          if Raw.is_none !last then o.root <- Raw.none else set_tail !last Raw.none;
          kept o';
          consume o;
          result
      | exception e ->
          Raw.write_back !free !aside !number;
          kept o';
          failed o e

    (* Merge sort of the contents, which the cells get back in their order. *)
    let sort compare r =
      let[@inline] in_order (a : Raw.cell) (b : Raw.cell) =
        let a : X.stored = Obj.magic a and b : X.stored = Obj.magic b in
        (if plain then compare (Obj.magic a : X.t) (Obj.magic b : X.t) else compare (peek a) (peek b)) <= 0
      in
      (* [source] and [result] have the same at [from, to_); [result] becomes sorted there. *)
      let rec sort_part source result from to_ =
        if to_ - from <= 6 then
          for i = from + 1 to to_ - 1 do
            let v = Array.unsafe_get result i in
            let j = ref (i - 1) in
            while !j >= from && not (in_order (Array.unsafe_get result !j) v) do
              Array.unsafe_set result (!j + 1) (Array.unsafe_get result !j);
              decr j
            done;
            Array.unsafe_set result (!j + 1) v
          done
        else begin
          let middle = (from + to_) / 2 in
          sort_part result source from middle;
          sort_part result source middle to_;
          let i = ref from and j = ref middle in
          for k = from to to_ - 1 do
            if
              !j = to_ || (!i < middle && in_order (Array.unsafe_get source !i) (Array.unsafe_get source !j))
            then begin
              Array.unsafe_set result k (Array.unsafe_get source !i);
              incr i
            end
            else begin
              Array.unsafe_set result k (Array.unsafe_get source !j);
              incr j
            end
          done
        end
      in
      let next = next r in
      let o = change r in
      match
        let result : int array = Array.make o.size 0 in
        Raw.read_out o.root result;
        if o.size > 1 then sort_part (Array.copy result) result 0 o.size;
        result
      with
      | result ->
          Raw.write_back o.root result o.size;
          done_ o next
      | exception e -> failed o e
  end
end

(* --- queues ------------------------------------------------------------------------------------------------------- *)

module Queue = struct
  module Make (X : STORED) () = struct
    include Chain (X) ()

    type t = right

    let push v r =
      let o = change r in
      match cell (store v) Raw.none with
      | c ->
          if Raw.is_none o.root then o.root <- c else set_tail o.last c;
          o.last <- c;
          o.size <- o.size + 1;
          kept o
      | exception e -> failed o e

    let pop r =
      let o = change r in
      if Raw.is_none o.root then begin
        kept o;
        None
      end
      else
        match Some (get (head o.root)) with
        | result ->
            let v = head o.root in
            drop_first o;
            free v;
            kept o;
            result
        | exception e -> failed o e

    let peek r =
      let o = read r in
      match if Raw.is_none o.root then None else Some (get (head o.root)) with
      | result ->
          end_reading o;
          result
      | exception e -> read_fails o e

    let of_seq s =
      let r = create () in
      Seq.iter (fun v -> push v r) s;
      r

    let transfer r r' =
      let o = change r in
      match change r' with
      | exception e -> failed o e
      | o' ->
          if not (Raw.is_none o.root) then begin
            if Raw.is_none o'.root then o'.root <- o.root else set_tail o'.last o.root;
            o'.last <- o.last;
            o'.size <- o'.size + o.size
          end;
          clear o;
          kept o;
          kept o'

    let clear r =
      room ();
      finish free_all 0 (change r)
  end
end

(* --- maps --------------------------------------------------------------------------------------------------------- *)

type ('k, 'v) tree =
  | Empty
  | Red of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree
  | Black of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree

module type KEY = sig
  include STORED

  val compare : t -> t -> int
end

module Map = struct
  (* Red-black trees. Equations: no red cell has a red branch; on every path from the root to a leaf there are equally
     many black cells; the root is black. On the way down nothing changes, so that [compare] may raise exceptions; on
     the way up no function of the user is called, and nothing is allocated. *)
  module Make (K : KEY) (V : STORED) () = struct
    type t = right
    type key = K.t
    type view = (K.stored, V.stored) tree

    let pool = Raw.pool 4 ~within:false
    let red = 0
    let black = 1
    let red_shape = (4 lsl 8) lor red
    let[@inline] left c = Raw.get c 0
    let[@inline] right c = Raw.get c 3
    let[@inline] key c : K.stored = Obj.magic (Raw.get c 1 : int)
    let[@inline] data c : V.stored = Obj.magic (Raw.get c 2 : int)
    let[@inline] set_left c x = Raw.set c 0 x
    let[@inline] set_right c x = Raw.set c 3 x
    let[@inline] set_data c (v : V.stored) = Raw.set c 2 (Obj.magic v : int)
    let[@inline] is_red c = (not (Raw.is_none c)) && Raw.tag c = red
    let[@inline] paint c colour = Raw.set_tag c colour
    let k = K.storage
    let v = V.storage
    let plain = k.plain && v.plain
    let key_of = k.get
    let key_at = k.peek
    let data_of = v.get
    let free_key = k.free
    let free_data = v.free
    let store_key = k.store
    let store_data = v.store

    (* The least cell goes first. What is left of it hangs right of its right branch, so that it is a tree, if not a
       balanced one, at each step, and each cell is moved once. *)
    let free_all o =
      if plain then begin
        let c = o.root in
        clear o;
        Raw.free_tree pool c 0 3
      end
      else begin
        while not (Raw.is_none o.root) do
          let c = o.root in
          let l = left c in
          if Raw.is_none l then begin
            let k = key c and v = data c in
            o.root <- right c;
            Raw.free pool c;
            free_key k;
            free_data v
          end
          else begin
            set_left c (right l);
            set_right l c;
            o.root <- l
          end
        done;
        clear o
      end

    let finaliser = forgotten free_all
    let owners = Owners.create Owners.tree ~plain
    let create () : t = owner_of owners finaliser
    let length = length
    let borrow r (f : view -> 'a) = borrowing r (fun o -> f (Raw.to_view o.root))

    let close r =
      room ();
      finish free_all 1 (change r)

    let live () = Raw.used pool
    let memory () = Raw.bytes pool
    let trim () = Owners.trim owners pool
    let check () = Raw.check pool

    (* The cell with this key, or none. *)
    let rec search k c =
      if Raw.is_none c then c
      else
        let order = K.compare k (key_at (key c)) in
        if order = 0 then c else search k (if order < 0 then left c else right c)

    let find k r =
      let o = read r in
      match
        let c = search k o.root in
        if Raw.is_none c then None else Some (data_of (data c))
      with
      | result ->
          end_reading o;
          result
      | exception e -> read_fails o e

    let mem k r =
      let o = read r in
      match search k o.root with
      | c ->
          end_reading o;
          not (Raw.is_none c)
      | exception e -> read_fails o e

    let fold f r acc =
      borrowing r (fun o ->
          let rec go c acc =
            if Raw.is_none c then acc else go (right c) (f (key_of (key c)) (data_of (data c)) (go (left c) acc))
          in
          go o.root acc)

    let iter f r = fold (fun k v () -> f k v) r ()

    let to_seq r = Stdlib.List.(to_seq (rev (fold (fun k v l -> (k, v) :: l) r [])))

    let fold_range ?from ?upto f r acc =
      borrowing r (fun o ->
          let rec go c acc =
            if Raw.is_none c then acc
            else
              let here = key_at (key c) in
              let after = match from with None -> true | Some k -> K.compare k here <= 0
              and before = match upto with None -> true | Some k -> K.compare k here >= 0 in
              let acc = if after then go (left c) acc else acc in
              let acc = if after && before then f (key_of (key c)) (data_of (data c)) acc else acc in
              if before then go (right c) acc else acc
          in
          go o.root acc)

    let rec least c = if Raw.is_none (left c) then c else least (left c)
    let rec greatest c = if Raw.is_none (right c) then c else greatest (right c)
    let binding c = (key_of (key c), data_of (data c))
    let min_binding r = borrowing r (fun o -> if Raw.is_none o.root then None else Some (binding (least o.root)))
    let max_binding r = borrowing r (fun o -> if Raw.is_none o.root then None else Some (binding (greatest o.root)))

    (* [t] is black, [l] was its left branch, and may be red with a red branch now. *)
    let[@inline never] balance_left t l =
      if is_red l then begin
        let ll = left l in
        if is_red ll then begin
          set_left t (right l);
          set_right l t;
          paint ll black;
          l
        end
        else begin
          let lr = right l in
          if is_red lr then begin
            set_right l (left lr);
            set_left t (right lr);
            set_left lr l;
            set_right lr t;
            paint l black;
            lr
          end
          else begin
            set_left t l;
            t
          end
        end
      end
      else begin
        set_left t l;
        t
      end

    let[@inline never] balance_right t r =
      if is_red r then begin
        let rr = right r in
        if is_red rr then begin
          set_right t (left r);
          set_left r t;
          paint rr black;
          r
        end
        else begin
          let rl = left r in
          if is_red rl then begin
            set_left r (right rl);
            set_right t (left rl);
            set_right rl r;
            set_left rl t;
            paint r black;
            rl
          end
          else begin
            set_right t r;
            t
          end
        end
      end
      else begin
        set_right t r;
        t
      end

    let new_cell k v =
      let k = store_key k in
      match store_data v with
      | exception e ->
          free_key k;
          raise e
      | v ->
          let c = Raw.fresh pool red_shape in
          if Raw.is_none c then begin
            free_key k;
            free_data v;
            raise Out_of_memory
          end;
          Raw.set c 1 (Obj.magic k : int);
          set_data c v;
          set_left c Raw.none;
          set_right c Raw.none;
          c

    (* [o.flag] becomes whether there is one more cell. *)
    let rec insert o k v c =
      if Raw.is_none c then begin
        let c = new_cell k v in
        o.flag <- true;
        c
      end
      else
        let order = K.compare k (key_at (key c)) in
        if order = 0 then begin
          let before = data c in
          set_data c (store_data v);
          o.flag <- false;
          free_data before;
          c
        end
        else if Raw.tag c = red then begin
          if order < 0 then set_left c (insert o k v (left c)) else set_right c (insert o k v (right c));
          c
        end
        else if order < 0 then balance_left c (insert o k v (left c))
        else balance_right c (insert o k v (right c))

    (* Inlined, as a call might find no room on the stack. Functions that free need none. *)
    let[@inline] free_cell c =
      let k = key c and v = data c in
      Raw.free pool c;
      free_key k;
      free_data v;
      () (* so that this is no tail call of an unknown function, before which signals are handled *)

    let add k v r =
      let next = next r in
      let o = change r in
      match insert o k v o.root with
      | root ->
          if o.flag then begin
            o.size <- o.size + 1;
            o.root <- root;
            paint root black
          end;
          done_ o next
      | exception e -> failed o e

    (* Below, [o.flag] says that the tree that a function returns has one black cell less on its paths than before. *)

    (* The left branch of [t] is short by one; the right one, [s], is black. *)
    let[@inline never] right_is_black o t s =
      let sr = right s in
      if is_red sr then begin
        set_right t (left s);
        set_left s t;
        paint s (Raw.tag t);
        paint t black;
        paint sr black;
        o.flag <- false;
        s
      end
      else begin
        let sl = left s in
        if is_red sl then begin
          set_right t (left sl);
          set_left s (right sl);
          set_left sl t;
          set_right sl s;
          paint sl (Raw.tag t);
          paint t black;
          o.flag <- false;
          sl
        end
        else begin
          paint s red;
          if Raw.tag t = red then begin
            paint t black;
            o.flag <- false
          end;
          t
        end
      end

    let[@inline never] left_is_black o t s =
      let sl = left s in
      if is_red sl then begin
        set_left t (right s);
        set_right s t;
        paint s (Raw.tag t);
        paint t black;
        paint sl black;
        o.flag <- false;
        s
      end
      else begin
        let sr = right s in
        if is_red sr then begin
          set_left t (right sr);
          set_right s (left sr);
          set_right sr t;
          set_left sr s;
          paint sr (Raw.tag t);
          paint t black;
          o.flag <- false;
          sr
        end
        else begin
          paint s red;
          if Raw.tag t = red then begin
            paint t black;
            o.flag <- false
          end;
          t
        end
      end

    let[@inline never] left_is_short o t =
      let s = right t in
      if Raw.tag s = red then begin
        set_right t (left s);
        paint s black;
        paint t red;
        set_left s (right_is_black o t (right t));
        s
      end
      else right_is_black o t s

    let[@inline never] right_is_short o t =
      let s = left t in
      if Raw.tag s = red then begin
        set_left t (right s);
        paint s black;
        paint t red;
        set_right s (left_is_black o t (left t));
        s
      end
      else left_is_black o t s

    (* What takes the place of [c], which has one branch at most, [b]. *)
    let[@inline] without o c b =
      if Raw.tag c = red then begin
        o.flag <- false;
        b
      end
      else if is_red b then begin
        paint b black;
        o.flag <- false;
        b
      end
      else begin
        o.flag <- true;
        b
      end

    (* Takes the least cell out; [o.last] becomes that. *)
    let rec remove_least o c =
      if Raw.is_none (left c) then begin
        o.last <- c;
        without o c (right c)
      end
      else begin
        set_left c (remove_least o (left c));
        if o.flag then left_is_short o c else c
      end

    (* Takes the cell with this key out; [o.left] becomes that, or none. *)
    let rec remove_from o k c =
      if Raw.is_none c then begin
        o.left <- c;
        o.flag <- false;
        c
      end
      else
        let order = K.compare k (key_at (key c)) in
        if order < 0 then begin
          set_left c (remove_from o k (left c));
          if o.flag then left_is_short o c else c
        end
        else if order > 0 then begin
          set_right c (remove_from o k (right c));
          if o.flag then right_is_short o c else c
        end
        else begin
          o.left <- c;
          if Raw.is_none (left c) then without o c (right c)
          else if Raw.is_none (right c) then without o c (left c)
          else begin
            let r = remove_least o (right c) in
            let m = o.last in
            o.last <- Raw.none;
            set_left m (left c);
            set_right m r;
            paint m (Raw.tag c);
            if o.flag then right_is_short o m else m
          end
        end

    let remove k r =
      let next = next r in
      let o = change r in
      match remove_from o k o.root with
      | root ->
          o.root <- root; (* black, as before: its colour was passed on *)
          let c = o.left in
          o.left <- Raw.none;
          if Raw.is_none c then done_ o next
          else begin
            o.size <- o.size - 1;
            consume o;
            free_cell c;
            next
          end
      | exception e -> failed o e

    let pop_min r =
      let next = next r in
      let o = change r in
      if Raw.is_none o.root then begin
        kept o;
        None
      end
      else
        match
          let result = Some (binding (least o.root), next) in
          o.left <- remove_least o o.root;
          result
        with
        | result ->
            o.root <- o.left;
            let c = o.last in
            o.left <- Raw.none;
            o.last <- Raw.none;
            o.size <- o.size - 1;
            consume o;
            free_cell c;
            result
        | exception e -> failed o e

    let update k f r = match f (find k r) with Some v -> add k v r | None -> remove k r
    let of_seq s = Seq.fold_left (fun r (k, v) -> add k v r) (create ()) s
  end
end

module Set = struct
  module Make (K : KEY) () = struct
    module M =
      Map.Make
        (K)
        (Plain (struct
          type t = unit
        end))
        ()

    type t = M.t
    type elt = K.t

    let create = M.create
    let length = M.length
    let add k r = M.add k () r
    let remove = M.remove
    let mem = M.mem
    let min_elt r = Option.map fst (M.min_binding r)
    let max_elt r = Option.map fst (M.max_binding r)
    let pop_min r = match M.pop_min r with Some ((k, ()), r) -> Some (k, r) | None -> None
    let fold f r acc = M.fold (fun k () acc -> f k acc) r acc
    let fold_range ?from ?upto f r acc = M.fold_range ?from ?upto (fun k () acc -> f k acc) r acc
    let iter f r = M.iter (fun k () -> f k) r
    let to_seq r = Seq.map fst (M.to_seq r)
    let of_seq s = Seq.fold_left (fun r k -> add k r) (create ()) s
    let close = M.close
    let live = M.live
    let memory = M.memory
    let trim = M.trim
    let check = M.check
  end
end

(* --- tables ------------------------------------------------------------------------------------------------------- *)

module type HASHED = sig
  include STORED

  val equal : t -> t -> bool
  val hash : t -> int
end

module Table = struct
  (* Chains of cells, by linear hashing: with each new cell beyond one for each bucket, one bucket is divided in two.
     Buckets are words outside the heap, in segments. The first segment has room for [least] buckets at first, and
     doubles until it is as large as the others. There are [half] buckets to 2 * [half]; bucket n was divided off from
     bucket n - [half]. *)
  let least = 8
  let segment_bits = 12
  let segment = 1 lsl segment_bits

  (* The stubs know where these fields are, and those of [data] below. *)
  type buckets = {
    mark : Obj.t;
    mutable segments : int array; (* addresses, as immediates *)
    mutable count : int;
    mutable half : int;
  }
  [@@warning "-69"]

  (* The address of bucket [i]: words are 8 bytes, and an address a is the immediate a / 2. *)
  let[@inline] place b i = Array.unsafe_get b.segments (i lsr segment_bits) + (4 * (i land (segment - 1)))
  let[@inline] bucket b i : Raw.cell = Array.unsafe_get (Raw.array_at (place b i)) 0
  let[@inline] set_bucket b i (c : Raw.cell) = Array.unsafe_set (Raw.array_at (place b i)) 0 c

  let[@inline] index b hash =
    let i = hash land ((2 * b.half) - 1) in
    if i >= b.count then i - b.half else i

  (* Makes room for bucket [i], the next one. *)
  let has_room b i =
    let s = i lsr segment_bits in
    let doubles = i < segment && i land (i - 1) = 0 in
    if i land (segment - 1) <> 0 && not doubles then true
    else begin
      if s >= Array.length b.segments then begin
        let more = Array.make ((2 * s) + 4) 0 in
        Array.blit b.segments 0 more 0 (Array.length b.segments);
        b.segments <- more
      end;
      let words = if doubles then max least (2 * i) else segment in
      let segment = Raw.buckets_resize b.segments.(s) ~words ~first:(s = 0) in
      if segment <> 0 then b.segments.(s) <- segment;
      segment <> 0
    end

  external shrink : buckets -> int -> int -> int -> unit = "outheap_linear_ml_buckets_shrink" [@@noalloc]

  let mix hash = (hash * 0x1E3779B97F4A7C15) lsr 17

  module Make (K : HASHED) (V : STORED) () = struct
    type key = K.t

    (* [most]: so many elements at most; [max_int]: any number, and cells have no [newer] and [older]. [evicted] is
       called with what has to go. *)
    type data = { b : buckets; most : int; pool : Raw.pool; evicted : (K.t -> V.t -> unit) option }
    type t = owner

    let k = K.storage
    let v = V.storage
    let plain = k.plain && v.plain
    let free_pool = Raw.pool 4 ~within:true (* of tables without bound *)
    let bound_pool = Raw.pool 6 ~within:true
    let free_shape = 4 lsl 8
    let bound_shape = 6 lsl 8
    let[@inline] data o : data = Obj.obj o.more
    let[@inline] key c : K.stored = Obj.magic (Raw.get c 0 : int)
    let[@inline] contents c : V.stored = Obj.magic (Raw.get c 1 : int)
    let[@inline] set_contents c (s : V.stored) = Raw.set c 1 (Obj.magic s : int)
    let[@inline] next c = Raw.get c 2
    let[@inline] set_next c x = Raw.set c 2 x
    let[@inline] hash_of c = Raw.get c 3
    let[@inline] newer c = Raw.get c 4
    let[@inline] older c = Raw.get c 5
    let[@inline] set_newer c x = Raw.set c 4 x
    let[@inline] set_older c x = Raw.set c 5 x
    let[@inline] is_bound d = d.most <> max_int

    (* Inlined, as in maps. *)
    let[@inline] free_cell d c =
      let a = key c and z = contents c in
      Raw.free d.pool c;
      k.free a;
      v.free z;
      ()

    (* Frees the cells, bucket by bucket. *)
    let empty o =
      let d = data o in
      let b = d.b in
      clear o;
      for i = 0 to b.count - 1 do
        if plain then begin
          let c = bucket b i in
          set_bucket b i Raw.none;
          Raw.free_chain d.pool c 2
        end
        else
          while not (Raw.is_none (bucket b i)) do
            let c = bucket b i in
            set_bucket b i (next c);
            free_cell d c
          done
      done

    (* And the buckets. *)
    let free_all o =
      empty o;
      let b = (data o).b in
      b.count <- 0;
      for i = 0 to Array.length b.segments - 1 do
        let s = b.segments.(i) in
        b.segments.(i) <- 0;
        Raw.buckets_free s ~first:(i = 0)
      done

    let finaliser = forgotten free_all
    let owners = Owners.create Owners.table ~plain

    let create ?(most = max_int) ?evicted () : t =
      if most < 1 then invalid_arg "Outheap_linear.Table.create: room for no element";
      let b = { mark = mark (); segments = [||]; count = 0; half = least } in
      let pool = if most = max_int then free_pool else bound_pool in
      let o = owner_with (Obj.repr { b; most; pool; evicted }) finaliser in
      if not (has_room b 0) then raise Out_of_memory;
      b.count <- least;
      Owners.add owners o;
      o

    (* Tables are not consumed, but for [close]: [version] is 0 until then. *)
    let right owner : right = { owner; version = 0 }
    let[@inline] change o =
      let why = begin_change o 0 in
      if why <> 0 then refused why

    let[@inline] read o =
      let why = begin_reading o 0 in
      if why <> 0 then refused why

    let length o = length (right o)

    let close o =
      room ();
      change o;
      finish free_all 1 o

    let clear o =
      room ();
      change o;
      finish empty 0 o

    let empty_and_shrink o =
      let b = (data o).b in
      empty o;
      shrink b 0 least b.count

    let reset o =
      room ();
      change o;
      finish empty_and_shrink 0 o

    let rec search wanted hash c =
      if Raw.is_none c || (hash_of c = hash && K.equal wanted (k.peek (key c))) then c else search wanted hash (next c)

    let divide b =
      let n = b.count in
      if has_room b n then begin
        let from = n - b.half in
        Raw.divide ~from:(place b from) ~into:(place b n) ~mask:((2 * b.half) - 1) ~n;
        b.count <- n + 1;
        if b.count = 2 * b.half then b.half <- b.count
      end

    (* The list of a table with a bound, from [o.root], the newest, to [o.last]. *)
    let unlink o c =
      let n = newer c and p = older c in
      if Raw.is_none n then o.root <- p else set_older n p;
      if Raw.is_none p then o.last <- n else set_newer p n

    let link_newest o c =
      let p = o.root in
      set_newer c Raw.none;
      set_older c p;
      if Raw.is_none p then o.last <- c else set_newer p c;
      o.root <- c

    let touch o c =
      if c <> o.root then begin
        unlink o c;
        link_newest o c
      end

    let[@inline] detach b c = Raw.unchain (place b (index b (hash_of c))) c

    let new_cell d wanted hash value =
      let a = k.store wanted in
      match v.store value with
      | exception e ->
          k.free a;
          raise e
      | z ->
          let c = Raw.fresh d.pool (if is_bound d then bound_shape else free_shape) in
          if Raw.is_none c then begin
            k.free a;
            v.free z;
            raise Out_of_memory
          end;
          Raw.set c 0 (Obj.magic a : int);
          set_contents c z;
          set_next c Raw.none;
          Raw.set c 3 hash;
          if is_bound d then begin
            set_newer c Raw.none;
            set_older c Raw.none
          end;
          c

    (* The table is whole again, and may be used by [evicted]. From here to its call no signal is handled: reading and
       freeing handle none, and the unit at the end is there because a function that ends by calling another may handle
       signals when it begins. Where reading finds no memory, or no room on the stack, the element goes unseen. *)
    let evict d c =
      match d.evicted with
      | None -> free_cell d c
      | Some f -> (
          match (k.get (key c), v.get (contents c)) with
          | a, z ->
              free_cell d c;
              f a z;
              ()
          | exception e ->
              let trace = Printexc.get_raw_backtrace () in
              free_cell d c;
              Printexc.raise_with_backtrace e trace)

    let replace_hashed hash wanted value o =
      change o;
      let d = data o in
      let b = d.b in
      match
        let c = search wanted hash (bucket b (index b hash)) in
        if Raw.is_none c then new_cell d wanted hash value
        else begin
          let before = contents c in
          set_contents c (v.store value);
          v.free before;
          if is_bound d then touch o c;
          Raw.none
        end
      with
      | exception e -> failed o e
      | c when Raw.is_none c -> kept o
      | c ->
          let i = index b hash in
          set_next c (bucket b i);
          set_bucket b i c;
          o.size <- o.size + 1;
          if is_bound d then link_newest o c;
          if o.size > d.most then begin
            let oldest = o.last in
            unlink o oldest;
            detach b oldest;
            o.size <- o.size - 1;
            kept o;
            evict d oldest
          end
          else begin
            match if o.size > b.count then divide b with
            | () | (exception Out_of_memory) -> kept o
            | exception e -> failed o e
          end

    (* Without a look at the order of use. *)
    let look_hashed hash wanted o =
      let d = data o in
      read o;
      match
        let c = search wanted hash (bucket d.b (index d.b hash)) in
        if Raw.is_none c then None else Some (v.get (contents c))
      with
      | result ->
          end_reading o;
          result
      | exception e -> read_fails o e

    let find_hashed hash wanted o =
      let d = data o in
      if is_bound d then begin
        change o;
        match
          let c = search wanted hash (bucket d.b (index d.b hash)) in
          if Raw.is_none c then None
          else begin
            touch o c;
            Some (v.get (contents c))
          end
        with
        | result ->
            kept o;
            result
        | exception e -> failed o e
      end
      else look_hashed hash wanted o

    let mem_hashed hash wanted o =
      let d = data o in
      read o;
      match search wanted hash (bucket d.b (index d.b hash)) with
      | c ->
          end_reading o;
          not (Raw.is_none c)
      | exception e -> read_fails o e

    let remove_hashed hash wanted o =
      change o;
      let d = data o in
      match search wanted hash (bucket d.b (index d.b hash)) with
      | c ->
          if not (Raw.is_none c) then begin
            detach d.b c;
            if is_bound d then unlink o c;
            o.size <- o.size - 1;
            shrink d.b o.size least 4;
            free_cell d c
          end;
          kept o
      | exception e -> failed o e

    let update_hashed hash wanted f o =
      match f (look_hashed hash wanted o) with
      | Some value -> replace_hashed hash wanted value o
      | None -> remove_hashed hash wanted o

    let hash_of_key wanted = mix (K.hash wanted)
    let replace wanted value o = replace_hashed (hash_of_key wanted) wanted value o
    let find wanted o = find_hashed (hash_of_key wanted) wanted o
    let mem wanted o = mem_hashed (hash_of_key wanted) wanted o
    let remove wanted o = remove_hashed (hash_of_key wanted) wanted o
    let update wanted f o = update_hashed (hash_of_key wanted) wanted f o

    let fold f o acc =
      borrowing (right o) (fun o ->
          let b = (data o).b in
          let rec chain c acc =
            if Raw.is_none c then acc else chain (next c) (f (k.get (key c)) (v.get (contents c)) acc)
          in
          let rec all i acc = if i = b.count then acc else all (i + 1) (chain (bucket b i) acc) in
          all 0 acc)

    let iter f o = fold (fun a z () -> f a z) o ()
    let to_seq o = Stdlib.List.to_seq (fold (fun a z l -> (a, z) :: l) o [])

    let of_seq s =
      let o = create () in
      Seq.iter (fun (a, z) -> replace a z o) s;
      o

    let filter p o =
      change o;
      let d = data o in
      let b = d.b in
      match
        for i = 0 to b.count - 1 do
          let rec go c =
            if not (Raw.is_none c) then begin
              let after = next c in
              if not (p (k.get (key c)) (v.get (contents c))) then begin
                detach b c;
                if is_bound d then unlink o c;
                o.size <- o.size - 1;
                free_cell d c
              end;
              go after
            end
          in
          go (bucket b i)
        done;
        shrink b o.size least b.count
      with
      | () -> kept o
      | exception e -> failed o e

    let live () = Raw.used free_pool + Raw.used bound_pool
    let memory () = Raw.bytes free_pool + Raw.bytes bound_pool
    let trim () = Owners.trim owners free_pool + Owners.trim owners bound_pool
    let check () = Raw.check free_pool ^ Raw.check bound_pool

    (* Every equation of a table; the first that does not hold. *)
    let check_table o =
      let d = data o in
      let b = d.b in
      let n = ref 0 and wrong = ref "" in
      for i = 0 to b.count - 1 do
        let c = ref (bucket b i) in
        while not (Raw.is_none !c) do
          incr n;
          if index b (hash_of !c) <> i then wrong := "bucket";
          if is_bound d then begin
            if (not (Raw.is_none (newer !c))) && older (newer !c) <> !c then wrong := "list";
            if Raw.is_none (newer !c) && o.root <> !c then wrong := "newest"
          end;
          c := next !c
        done
      done;
      if !n <> o.size then wrong := "size";
      if b.count < b.half || b.count >= 2 * b.half then wrong := "buckets";
      if is_bound d then begin
        let c = ref o.root and m = ref 0 and last = ref Raw.none in
        while not (Raw.is_none !c) do
          incr m;
          last := !c;
          c := older !c
        done;
        if !m <> o.size || !last <> o.last then wrong := "order"
      end;
      !wrong

    (* Buckets and chains as in a table, of values of the heap, or of strings in cells: a region has copies of them. *)
    type chain = End | Link of { key : K.t; value : V.t; hash : int; next : chain }
    type image = { chains : chain array; halved : int; elements : int }

    (* Saves tables whose keys differ as one. They are borrowed until the file is written. *)
    let save_all schema ~path tables =
      let save () =
        let elements = Stdlib.List.fold_left (fun n o -> n + o.size) 0 tables in
        let rec halved n = if 2 * n > max least elements then n else halved (2 * n) in
        let buckets = { mark = mark (); segments = [||]; count = max least elements; half = halved least } in
        let chains = Array.make buckets.count End in
        let add c =
          let i = index buckets (hash_of c) in
          let next = chains.(i) in
          chains.(i) <- Link { key = k.peek (key c); value = v.peek (contents c); hash = hash_of c; next }
        in
        let rec add_chain c =
          if not (Raw.is_none c) then begin
            add c;
            add_chain (next c)
          end
        in
        let add_all o =
          let b = (data o).b in
          for i = 0 to b.count - 1 do add_chain (bucket b i) done
        in
        Stdlib.List.iter add_all tables;
        Outheap_region.save schema ~path { chains; halved = buckets.half; elements }
      in
      let rec borrowed = function [] -> save () | o :: others -> borrowing (right o) (fun _ -> borrowed others) in
      borrowed tables

    let save schema ~path o = save_all schema ~path [ o ]

    (* One table for each lock, by high bits of the hash: buckets go by the low ones. *)
    module Sharded = struct
      type shard = {
        lock : lock;
        table : owner;
        gone : gone ref; (* of the call that has the lock *)
      }

      (* What had to go in a call. Storing it here allocates nothing, so that no signal is handled in between. *)
      and gone = { mutable is : bool; mutable a : Obj.t; mutable z : Obj.t }

      (* [mark]: as that of owners. *)
      type t = { mark : Obj.t; shards : shard array; evicted : (K.t -> V.t -> unit) option } [@@warning "-69"]

      let most_shards = 4096

      let create ?(shards = 16) ?(most = max_int) ?evicted () =
        if shards < 1 || shards > most_shards then
          invalid_arg "Outheap_linear.Table.Sharded.create: 1 to 4096 shards";
        if most < 1 then invalid_arg "Outheap_linear.Table.Sharded.create: room for no element";
        let rec power n = if n >= shards || 2 * n > most then n else power (2 * n) in
        let n = power 1 in
        let shard i =
          let most = if most = max_int then most else (most / n) + if i < most mod n then 1 else 0 in
          let gone = ref { is = false; a = Obj.repr 0; z = Obj.repr 0 } in
          let keep _ a z =
            let g = !gone in
            g.a <- Obj.repr (a : K.t);
            g.z <- Obj.repr (z : V.t);
            g.is <- true
          in
          let keep = Option.map keep evicted in
          { lock = lock_new (); table = create ~most ?evicted:keep (); gone }
        in
        { mark = mark (); shards = Array.init n shard; evicted }

      let[@inline] shard t hash = Array.unsafe_get t.shards ((hash lsr 34) land (Array.length t.shards - 1))

      (* Not inlined: what [f] needs is allocated before the lock is taken. Between that and what gives it, no signal is
         handled. *)
      let[@inline never] locked s f =
        lock_take s.lock;
        match f s with
        | result ->
            lock_give s.lock;
            result
        | exception e ->
            lock_give s.lock;
            let trace = Printexc.get_raw_backtrace () in
            Printexc.raise_with_backtrace e trace

      (* Inlined, for a function that ends by calling another may handle signals when it begins. *)
      let[@inline] hand_on_kept gone evicted =
        if gone.is then begin
          let a : K.t = Obj.obj gone.a and z : V.t = Obj.obj gone.z in
          gone.is <- false;
          gone.a <- Obj.repr 0;
          gone.z <- Obj.repr 0;
          evicted a z
        end

      (* [f] may put an element into the table; what goes for that is handed on without the lock, also where an
         exception comes after it has gone. *)
      let evicting t s f =
        match t.evicted with
        | None -> locked s f
        | Some evicted -> (
            let gone = { is = false; a = Obj.repr 0; z = Obj.repr 0 } in
            match locked s (fun s -> s.gone := gone; f s) with
            | () -> hand_on_kept gone evicted
            | exception e ->
                let trace = Printexc.get_raw_backtrace () in
                hand_on_kept gone evicted;
                Printexc.raise_with_backtrace e trace)

      let replace wanted value t =
        let hash = hash_of_key wanted in
        evicting t (shard t hash) (fun s -> replace_hashed hash wanted value s.table)

      let find wanted t =
        let hash = hash_of_key wanted in
        locked (shard t hash) (fun s -> find_hashed hash wanted s.table)

      let mem wanted t =
        let hash = hash_of_key wanted in
        locked (shard t hash) (fun s -> mem_hashed hash wanted s.table)

      let remove wanted t =
        let hash = hash_of_key wanted in
        locked (shard t hash) (fun s -> remove_hashed hash wanted s.table)

      let update wanted f t =
        let hash = hash_of_key wanted in
        evicting t (shard t hash) (fun s -> update_hashed hash wanted f s.table)

      let length t = Array.fold_left (fun n s -> n + length s.table) 0 t.shards
      let fold f t acc = Array.fold_left (fun acc s -> locked s (fun s -> fold f s.table acc)) acc t.shards
      let iter f t = fold (fun a z () -> f a z) t ()
      let filter p t = Array.iter (fun s -> locked s (fun s -> filter p s.table)) t.shards
      let clear t = Array.iter (fun s -> locked s (fun s -> clear s.table)) t.shards

      (* Parts that an interrupted call has closed are passed over. *)
      let close t =
        let close_part open_before s =
          match locked s (fun s -> close s.table) with () -> true | exception Moved -> open_before
        in
        if not (Array.fold_left close_part false t.shards) then raise Moved

      let check_table t =
        let check wrong s = if wrong = "" then locked s (fun s -> check_table s.table) else wrong in
        Array.fold_left check "" t.shards

      (* [f] with all locks. They are taken in the order of the parts, by all that take more than one; a thread that has
         one already is refused before it waits. Between the taking of one and its being counted, and between the end of
         [f] and the giving, no signal is handled. *)
      let[@inline never] all_locked t f =
        let locks = Array.map (fun s -> s.lock) t.shards and taken = ref 0 in
        if Array.exists lock_is_ours locks then raise Borrowed;
        match
          for i = 0 to Array.length locks - 1 do
            lock_take (Array.unsafe_get locks i);
            taken := i + 1
          done;
          f t.shards
        with
        | result ->
            locks_give locks !taken;
            result
        | exception e ->
            locks_give locks !taken;
            let trace = Printexc.get_raw_backtrace () in
            Printexc.raise_with_backtrace e trace

      let save schema ~path t =
        all_locked t (fun shards ->
            save_all schema ~path (Array.fold_right (fun s tables -> s.table :: tables) shards []))
    end

    module Image = struct
      type t = image Outheap_region.root

      let region = Outheap_region.region

      let has_tag_0 v = Obj.is_block v && Raw.tag (Obj.magic v : Raw.cell) = 0
      let is_record v ~fields = has_tag_0 v && Obj.size v = fields

      (* Another value may have been saved with this schema. *)
      let is_image v =
        is_record v ~fields:3 && has_tag_0 (Obj.field v 0) && Obj.is_int (Obj.field v 1) && Obj.is_int (Obj.field v 2)

      let is_link c = is_record c ~fields:4 && Obj.is_int (Obj.field c 2)

      (* The first element, if there is one. *)
      let first i =
        let rec go n = if n = Array.length i.chains then End else match i.chains.(n) with End -> go (n + 1) | c -> c in
        go 0

      (* A program whose keys have other hashes would find nothing. *)
      let wrong i =
        let count = Array.length i.chains in
        if i.halved < least || i.halved land (i.halved - 1) <> 0 || count < i.halved || count >= 2 * i.halved then
          "no table: the number of buckets"
        else
          match first i with
          | End -> if i.elements = 0 then "" else "no table: the number of elements"
          | Link _ as c when not (is_link (Obj.repr c)) -> "no table: the first element"
          | Link { key; hash; _ } ->
              if hash = hash_of_key key then "" else "a key has another hash than in the program that saved it"

      let map schema ~path ?verify () =
        match Outheap_region.map schema ~path ?verify () with
        | Error _ as e -> e
        | Ok root -> (
            let i = Outheap_region.get root in
            match if is_image (Obj.repr i) then wrong i else "no table: another value" with
            | "" -> Ok root
            | what -> Error (Outheap_region.Damaged { file = path; what }))

      let length t = (Outheap_region.get t).elements

      let search wanted t =
        let i = Outheap_region.get t and hash = hash_of_key wanted in
        let n = hash land ((2 * i.halved) - 1) in
        let rec go = function
          | Link l as c -> if l.hash = hash && K.equal wanted l.key then c else go l.next
          | End -> End
        in
        go i.chains.(if n >= Array.length i.chains then n - i.halved else n)

      let find wanted t = match search wanted t with Link { value; _ } -> Some value | End -> None
      let mem wanted t = match search wanted t with Link _ -> true | End -> false

      let fold f t acc =
        let rec chain c acc = match c with End -> acc | Link { key; value; next; _ } -> chain next (f key value acc) in
        Array.fold_left (fun acc c -> chain c acc) acc (Outheap_region.get t).chains

      let iter f t = fold (fun a z () -> f a z) t ()
    end
  end
end

(* --- a program's own types ---------------------------------------------------------------------------------------- *)

module Cells = struct
  type 'a taken = { fields : 'a; token : int }

  let fields taken = taken.fields

  module type TYPE = sig
    type t

    val example : t
  end

  module Make (T : TYPE) () = struct
    type token = int

    (* Cells that are written again must keep their constructor: it is the tag, which is that of the pool. *)
    let () =
      if not (Raw.is_ordinary T.example) then
        invalid_arg "Outheap_linear.Cells.Make: the example may be of a polymorphic variant or an extensible type"

    let group = Raw.group ()

    let refused = function
      | 1 -> invalid_arg "Outheap_linear.Cells.take: not a cell of this functor"
      | 2 -> raise Moved
      | 3 -> raise Out_of_memory
      | 4 -> invalid_arg "Outheap_linear.Cells: not a block of a constructor, tuple or record, of 62 fields at most"
      | 5 -> invalid_arg "Outheap_linear.Cells.put: the cell had another constructor"
      | n -> invalid_arg (Printf.sprintf "Outheap_linear.Cells: field %d is a value of the heap" (n - 6))

    let result (v : Obj.t) : T.t = if Obj.is_int v then refused (Obj.obj v : int) else Sys.opaque_identity (Obj.obj v)
    let make (v : T.t) = result (Raw.make group v)

    (* The compiler may read the fields of an immutable block later, when the cell has others; so these are read as
       those of an array are. Pairs, such as the cells of lists, are copied without a call. *)
    let[@inline] copy (v : T.t) : T.t =
      let c : Raw.cell = Obj.magic v in
      if Obj.size (Obj.repr v) = 2 && Raw.tag c = 0 then Obj.magic (Raw.get c 0, Raw.get c 1)
      else Obj.obj (Obj.dup (Obj.repr v))

    let take (v : T.t) =
      let token = Raw.take group v in
      if token <= 0 && token >= -2 then refused (-token);
      match { fields = copy v; token } with
      | taken -> taken
      | exception e ->
          Raw.untake token;
          raise e

    let token taken = taken.token
    let put token (v : T.t) = result (Raw.put group token v)
    let drop token = match Raw.drop group token with 0 -> () | n -> refused n

    let live () = Group.sum group Raw.used
    let memory () = Group.sum group Raw.bytes
    let trim () = Group.sum group Raw.trim
    let check () = Group.check group
  end
end
