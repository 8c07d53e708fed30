(* SPDX-License-Identifier: MIT *)

(** Owned data: lists, queues, maps and hash tables in cells outside the heap, changed in place.

    A container here has one owner at a time. An operation consumes its argument, and returns the container that its
    cells have become: [let l = L.cons 1 l]. So it reads as functional code does, and writes no new cells where there
    are old ones. The collector neither marks nor moves cells, however many there are; they are freed by the operation
    that drops them, by [close], or, if an owner is forgotten, by its finaliser.

    The contents of a container can be {e borrowed}: for the time of a function it is an ordinary list or tree, which
    ordinary code reads; the borrow of a list is a list of borrows.

    {2 What is checked}
    - An owner that was consumed raises {!Moved} when it is used again.
    - A change during a borrow, from a function that another operation calls, or by another domain meanwhile, raises
      {!Borrowed}.
    - Containers cannot be marshalled, compared ([compare] of two, and [=], raise [Invalid_argument]), or copied into
      regions.
    - One that was forgotten is consumed by its finaliser: a finaliser of the program that comes later, or who finds it
      by a weak pointer, gets {!Moved}.
    - Values that cells cannot hold are refused with [Invalid_argument]: see {!Plain}.
    - An exception from a function of the caller leaves the owner valid, and nothing is lost.

    {2 What is not}
    A borrow, or a part of one, that is kept after the function has returned is {e stale}. Its memory stays the pool's,
    so it is of its type: it may have other contents by then, and after {!Map.Make.trim} and the like reading it ends
    the process ([compare], [=] and [Hashtbl.hash] need not: they find an empty block). It is never a value of another
    type, nor does it hurt the collector. {!poison} finds such uses.

    A borrow is no value of the heap: [Gc.finalise] and weak pointers do not tell when a cell is freed.

    A function of the program that performs an effect while an operation runs must be resumed in the end, or
    discontinued: a fiber that is dropped in the middle leaves its container borrowed, and what is borrowed is not
    freed. So it is with the lock of a part of {!Table.Make.Sharded}.

    A container may be handed to another domain. Two that use one at the same time are told so: one of them gets
    {!Borrowed}, unless both read. Containers of one functor share a pool, from several domains too. If a
    signal handler raises in the middle of an operation, it is as if a function of the caller had raised: the right that
    the operation was given stays valid. No signal is handled between the change of a container and the return of its
    new right. [close] and [clear] are done first. In bytecode a right or elements may be lost there, and the container
    may count as borrowed for ever.

    It works with the stock runtime too, and with OCaml 4.14; with the runtime variant [_outheap] memory goes back to
    the system. [docs/guide/linear.md] has the rest, and says when a container of the heap is better.

    The idea: linear allocation with reuse, and resource polymorphism, in appendix A of the paper on out-of-heap
    pointers; functional programming in place (Koka, Perceus). *)

exception Moved
(** The owner was consumed before. *)

exception Borrowed
(** The container is borrowed, or being changed further down the stack. *)

(** {1 What containers hold} *)

module type TYPE = sig
  type t
end

type ('a, 's) storage
(** How cells have values of ['a]: as ['s]. {!Plain} and {!Rooted} make them. *)

(** Contents of a container. *)
module type STORED = sig
  type t
  (** The type that a program stores and gets. *)

  type stored
  (** The type in a cell, and so in a borrow. *)

  val storage : (t, stored) storage
end

(** Values as they are: immediates, constants of the program (of any type: literals, functions without free variables),
    and values of regions for which {!hold} was called. Others are refused, with [Invalid_argument]. A block that C code
    made outside the heap (with [Caml_out_of_heap_header]) counts as a constant, and must stay. In bytecode
    constants lie in the heap, and are refused too; so they are with OCaml 4.14 and the stock runtime where that cannot
    tell what is a constant. Cost of storing: some ns for a block. *)
module Plain (T : TYPE) : sig
  include STORED with type t = T.t and type stored = T.t

  val get : stored -> t
end

(** Any values. A cell has the number of a slot in an array in the heap, from which [get] reads. Such slots are marked
    by the collector, and cost one word each as long as the program runs. They are roots: a container that its own
    values lead to is not forgotten; [close] it. *)
module Rooted (T : TYPE) () : sig
  include STORED with type t = T.t

  val get : stored -> t
  (** @raise Moved if the number is stale, or came from another process, and there is no value of that number. *)
end

(** Strings, copied into cells: the collector sees nothing of them. Functions of this module return, and give to
    [iter], [fold] and the like, a copy in the heap; comparison and hash functions get the cell itself, as a borrowed
    string. A string of more than 495 bytes is held as {!Rooted} holds it. All uses share one set of pools. *)
module Text : sig
  include STORED with type t = string

  val get : stored -> string
  (** A copy. @raise Moved if it is stale, and was a long one or {!poison} was on; so does [peek]. *)

  val peek : stored -> string
  (** The string itself, without a copy: borrowed, as what it was found in. When it is stale, its contents and length
      may change; another domain must not read it then. *)

  val live : unit -> int
  val memory : unit -> int

  val trim : unit -> int
  (** As that of lists, for the texts of all containers. *)

  (**/**)

  val check : unit -> string
end

(** Values of any type, as texts: composite keys, for instance. *)
module type CODE = sig
  type t

  val encode : t -> string
  val decode : string -> t
  (** Of what [encode] returned. *)
end

module Coded (C : CODE) : sig
  include STORED with type t = C.t

  val get : stored -> t
  (** Here and below: @raise Moved as {!Text.get} does. *)
end

(** Floating-point and 64-bit numbers, with all their bits. A number takes 24 bytes beside its cell; what returns one
    allocates it. *)
module Float : sig
  include STORED with type t = float

  val get : stored -> t
end

module Int64 : sig
  include STORED with type t = int64

  val get : stored -> t
end

val hold : 'a Outheap_region.root -> unit
(** From now on values of that region, of any type, may be in cells. The region stays until the program ends, or revokes
    it: then a read of what cells have of it faults, as any read of it does. *)

val poison : bool -> unit
(** While this is on, cells that are freed are overwritten with pointers to memory that cannot be read: to find borrows
    that are used too late, by [compare], [=], [Hashtbl.hash] and [Marshal] too. Of a text that was freed, {!Text.get}
    and {!Text.peek} raise {!Moved} until its cell is used again. Cost: a write of each freed cell. *)

(** {1 Lists} *)

module List : sig
  module Make (X : STORED) () : sig
    type t
    (** An owned list. *)

    type view = X.stored list
    (** As it is borrowed. *)

    val create : unit -> t
    (** An empty one. Cost: about 1 µs, for a finaliser. *)

    val length : t -> int
    (** Constant time. *)

    val cons : X.t -> t -> t
    (** @raise Out_of_memory if there is none. *)

    val uncons : t -> (X.t * t) option
    (** The first element and the rest; [None] if the list is empty, which stays valid then. *)

    val of_list : X.t list -> t
    val of_seq : X.t Seq.t -> t

    val rev : t -> t
    (** In place; no allocation for the elements. This and the next two, and parts of [sort], run for some ns for each
        element without a point where the domain would take part in a collection of the others. *)

    val append : t -> t -> t
    (** Consumes both. Cost: linear in the first. *)

    val rev_append : t -> t -> t
    (** Consumes both. Cost: linear in the first. *)

    val map : (X.t -> X.t) -> t -> t
    (** Replaces the elements, from the first on. When the function raises, those before have been replaced. *)

    val filter : (X.t -> bool) -> t -> t
    (** Keeps those for which the function says so. When it raises an exception, those before have been judged. *)

    val partition : (X.t -> bool) -> t -> t * t
    (** Those for which the function says so, and the others, both in their order. Needs a word for each element until
        it is done. When the function raises an exception, the list has all its elements: of those that were judged
        before, first the ones for the first list. Cost: about 1 µs, for the second list's finaliser, and some ns for
        each element. *)

    val sort : (X.t -> X.t -> int) -> t -> t
    (** Stable. Needs two words for each element until it is done. When the function raises an exception, the list is as
        it was. *)

    val iter : (X.t -> unit) -> t -> unit
    (** Borrows. *)

    val iteri : (int -> X.t -> unit) -> t -> unit
    val fold : ('a -> X.t -> 'a) -> 'a -> t -> 'a
    (** Borrows, and so do the next three. *)

    val find : (X.t -> bool) -> t -> X.t option
    (** The first for which the function says so. *)

    val exists : (X.t -> bool) -> t -> bool
    val for_all : (X.t -> bool) -> t -> bool

    val to_list : t -> X.t list
    (** A copy in the heap. *)

    val to_seq : t -> X.t Seq.t
    (** As [to_list]: what the list has now. So it is with all [to_seq] below. *)

    val borrow : t -> (view -> 'a) -> 'a
    (** Calls the function with the list itself, without a copy. Borrows may be nested. *)

    val close : t -> unit
    (** Frees it. Linear. *)

    val live : unit -> int
    (** Cells in use, of all lists of this functor. *)

    val memory : unit -> int
    (** Bytes of address space of its pool, a multiple of 2 MiB. *)

    val trim : unit -> int
    (** Gives memory back to the system, with the runtime variant: where half of a page or less is in use, cells move
        together, and then all pages without cells in use go back. Result: bytes. Containers that are borrowed, or in
        use further down the stack, stay where they are; another domain that begins to use one waits. Cost: if there are
        such pages, some ns for each element of all lists of this functor, without a point where the domain would take
        part in a collection of the others. Some pages go back by themselves. *)

    (**/**)

    val check : unit -> string
  end
end

(** {1 Queues} *)

(** First in, first out. Operations change the queue, and do not consume it. Where no cost is said, an operation takes
    constant time, some ns. *)
module Queue : sig
  module Make (X : STORED) () : sig
    type t
    type view = X.stored list

    val create : unit -> t
    (** Cost: about 1 µs, for a finaliser. *)

    val length : t -> int

    val push : X.t -> t -> unit
    (** At the end. @raise Out_of_memory if there is none. *)

    val of_seq : X.t Seq.t -> t
    (** Linear; so are [iter], [iteri], [fold], [to_list] and [to_seq], and [find], [exists] and [for_all] up to the
        element that decides. *)

    val pop : t -> X.t option
    (** The first. *)

    val peek : t -> X.t option

    val transfer : t -> t -> unit
    (** [transfer q q'] moves all elements of [q] to the end of [q']. *)

    val iter : (X.t -> unit) -> t -> unit
    val iteri : (int -> X.t -> unit) -> t -> unit
    val fold : ('a -> X.t -> 'a) -> 'a -> t -> 'a
    val find : (X.t -> bool) -> t -> X.t option
    val exists : (X.t -> bool) -> t -> bool
    val for_all : (X.t -> bool) -> t -> bool
    val to_list : t -> X.t list
    val to_seq : t -> X.t Seq.t

    val clear : t -> unit
    (** Empties it. Linear. *)

    val borrow : t -> (view -> 'a) -> 'a
    (** As that of lists. *)

    val close : t -> unit
    (** Frees it; it cannot be used any more. Linear. *)

    val live : unit -> int
    val memory : unit -> int

    val trim : unit -> int
    (** These three are as those of lists. *)

    (**/**)

    val check : unit -> string
  end
end

(** {1 Maps} *)

(** As maps are borrowed: a red-black tree, ordered by keys. *)
type ('k, 'v) tree =
  | Empty
  | Red of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree
  | Black of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree

module type KEY = sig
  include STORED

  val compare : t -> t -> int
  (** A total order. *)
end

module Map : sig
  module Make (K : KEY) (V : STORED) () : sig
    type t
    type key = K.t
    type view = (K.stored, V.stored) tree

    val create : unit -> t
    (** Cost: about 1 µs, for a finaliser. *)

    val length : t -> int
    (** Constant time. *)

    val add : key -> V.t -> t -> t
    (** Replaces what the key had. Logarithmic. @raise Out_of_memory if there is none. *)

    val remove : key -> t -> t
    (** Nothing happens if the key is not there. Logarithmic. *)

    val update : key -> (V.t option -> V.t option) -> t -> t
    (** Gives what the key has to the function, and the key what that returns; [None] is no element.
        Logarithmic: it looks the key up twice. *)

    val find : key -> t -> V.t option
    (** Logarithmic; so are the next three. *)

    val mem : key -> t -> bool
    val min_binding : t -> (key * V.t) option
    val max_binding : t -> (key * V.t) option

    val pop_min : t -> ((key * V.t) * t) option
    (** The least, and the rest; [None] if the map is empty, which stays valid then. Logarithmic. *)

    val split : key -> t -> t * V.t option * t
    (** The elements before the key, what it has, and the elements after it. When [compare] raises an exception, the map
        is as it was. Cost: logarithmic, about 1 µs for the second map's finaliser, and some ns for each element of the
        smaller part, which are counted. *)

    val union : (key -> V.t -> V.t -> V.t option) -> t -> t -> t
    (** The elements of both, which are consumed. The function decides what a key has that is in both, if
        anything; it is called in no particular order. When it or [compare] raises an exception, both maps stay
        valid, and each element is in one of them: some of the second map's may be in the first. Cost: with [m] elements
        in the smaller map and [n] in the other, [m] times the logarithm of [n / m + 1]; nothing is allocated. *)

    val of_seq : (key * V.t) Seq.t -> t
    (** As [add] of each. *)

    val to_seq : t -> (key * V.t) Seq.t
    (** In ascending order. Linear; so are [iter] and [fold]. *)

    val iter : (key -> V.t -> unit) -> t -> unit
    (** In ascending order. Borrows. *)

    val fold : (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a
    (** In ascending order. Borrows. *)

    val fold_range : ?from:key -> ?upto:key -> (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a
    (** Of the keys from one to the other, both included: without [from] from the least, without [upto] to the greatest.
        Borrows. Cost: that of [find], and of the elements in between. *)

    val borrow : t -> (view -> 'a) -> 'a
    (** Calls the function with the tree itself, without a copy. *)

    val close : t -> unit
    (** Frees it. Linear. *)

    type image
    (** The contents of a saved map's file: for its schema, whose version changes when the types of keys or values do,
        or [compare]. *)

    val save : image Outheap_region.schema -> path:string -> t -> (unit, Outheap_region.error) result
    (** As {!Outheap_region.save}, which says what it refuses: functions, for instance. Borrows. Takes two words of the
        heap for each element, until it is done; texts are copied once, into the file. *)

    (** A map in a file, which processes map as an image of a region ({!Outheap_region}): nothing is loaded, and they
        share its pages. It is read-only. *)
    module Image : sig
      type t
      (** Mapped as long as this, or any value from it, is reachable. Any number of domains may read it at once. *)

      val map :
        image Outheap_region.schema ->
        path:string ->
        ?verify:[ `Header | `Full ] ->
        unit ->
        (t, Outheap_region.error) result
      (** As {!Outheap_region.map}. [Damaged] as well if the image is none of a map, or its keys have another order than
          in the program that saved it: the first and the last one are compared. *)

      val length : t -> int
      (** Constant time. *)

      val find : key -> t -> V.t option
      (** The value itself, which lies in the region: a program that writes to it dies. Logarithmic. Here and below:
          @raise Outheap_region.Deleted if the region was deleted or revoked. *)

      val mem : key -> t -> bool

      val fold : (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a
      (** In ascending order; so are the next two. *)

      val fold_range : ?from:key -> ?upto:key -> (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a
      val iter : (key -> V.t -> unit) -> t -> unit
      val region : t -> Outheap_region.t
    end

    val live : unit -> int
    val memory : unit -> int

    val trim : unit -> int
    (** These three are as those of lists. *)

    (**/**)

    val check : unit -> string
  end
end

(** {1 Sets}

    Maps without contents: each operation is that of a map. *)
module Set : sig
  module Make (K : KEY) () : sig
    type t
    type elt = K.t

    val create : unit -> t
    val length : t -> int
    val add : elt -> t -> t
    val remove : elt -> t -> t
    val mem : elt -> t -> bool
    val min_elt : t -> elt option
    val max_elt : t -> elt option
    val pop_min : t -> (elt * t) option
    val split : elt -> t -> t * bool * t
    val union : t -> t -> t
    val iter : (elt -> unit) -> t -> unit
    val fold : (elt -> 'a -> 'a) -> t -> 'a -> 'a
    val fold_range : ?from:elt -> ?upto:elt -> (elt -> 'a -> 'a) -> t -> 'a -> 'a
    val of_seq : elt Seq.t -> t
    val to_seq : t -> elt Seq.t
    val close : t -> unit
    val live : unit -> int
    val memory : unit -> int
    val trim : unit -> int

    (**/**)

    val check : unit -> string
  end
end

(** {1 Hash tables} *)

module type HASHED = sig
  include STORED

  val equal : t -> t -> bool
  val hash : t -> int
  (** Equal for equal keys. *)
end

(** Hash tables, with a bound or without. Operations change the table, and do not consume it. A table grows by one
    bucket at a time, so that no operation takes long for that. Where no cost is said, an operation takes constant time
    on average, some ten ns beside what [hash] and [equal] take; it is longer where many keys have the same hash. *)
module Table : sig
  module Make (K : HASHED) (V : STORED) () : sig
    type t
    type key = K.t

    val create : ?most:int -> ?evicted:(key -> V.t -> unit) -> unit -> t
    (** An empty table. With [most], it has so many elements at most: adding one more takes the one out that was not
        used for longest, and then calls [evicted] with it, which may use the table. [replace] and [find] count as use;
        so [find] changes such a table, and raises {!Borrowed} while it is borrowed ([mem] does not). Cost: about 1 µs,
        for a finaliser.
        @raise Invalid_argument if [most] < 1. @raise Out_of_memory if there is none. *)

    val length : t -> int

    val evictions : t -> int
    (** How many elements were taken out to make room, ever. *)

    val replace : key -> V.t -> t -> unit
    (** Adds an element, or replaces what the key had. When it raises [Out_of_memory], or what [equal] raises, the table
        is as it was. *)

    val find : key -> t -> V.t option
    val mem : key -> t -> bool

    val remove : key -> t -> unit
    (** A table that has lost much, here or by [filter], has fewer buckets: four for each element at most. *)

    val update : key -> (V.t option -> V.t option) -> t -> unit
    (** Gives what the key has to the function, which may use the table, and the key what that returns; [None] is no
        element. *)

    val of_seq : (key * V.t) Seq.t -> t
    (** The last one counts where keys are equal. Linear; so are the next four: in elements and buckets. *)

    val to_seq : t -> (key * V.t) Seq.t

    val iter : (key -> V.t -> unit) -> t -> unit
    (** In no particular order. Borrows. *)

    val fold : (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a

    val filter : (key -> V.t -> bool) -> t -> unit
    (** Keeps those for which the function says so. When it raises an exception, some have been judged. *)

    val clear : t -> unit
    (** Empties the table; its buckets stay. Linear; so are the next two. *)

    val reset : t -> unit
    (** Empties the table, which is as small as a new one then. *)

    val close : t -> unit
    (** Frees it; it cannot be used any more ({!Moved}). *)

    val live : unit -> int
    val memory : unit -> int

    val trim : unit -> int
    (** These three are as those of lists. *)

    type image
    (** The contents of a saved table's file: for its schema, whose version changes when the types of keys or values do,
        or [hash]. *)

    (** {2 From several domains}

        A table in parts, each with a lock, for domains and threads that use it at once. The part is chosen by the hash
        of the key. An operation waits until the lock is free, and is as a whole before or after any other of that key;
        it is the same operation as that of a table, with the lock held. While it waits, other threads of its domain
        run. Cost: some 25 ns more than the operation of a table; where domains meet, cache lines that move.

        Functions of the caller ([equal], and those that are given to [update], [fold], [iter] and [filter]) run with
        the lock of one part held: they should be short, must not wait for another domain that uses the table, nor
        switch to another fiber. If they use the same table, they get {!Borrowed} if it is the same part; else they
        wait for a second lock, which can wait for ever when another thread does the same in the other order. [hash]
        and [evicted] run without a lock, and may use the table. Finalisers and signal handlers may run inside any
        operation, so what is said of functions of the caller is true of them: let them put the key into a list, and
        remove it elsewhere.

        After [fork], a part that another thread was using is locked for ever in the child process; one that the thread
        was using which has forked is not. A part without elements takes less than 1 KB. *)
    module Sharded : sig
      type t

      val create : ?shards:int -> ?most:int -> ?evicted:(key -> V.t -> unit) -> unit -> t
      (** [shards]: so many parts (default: 16), from 1 to 4096, rounded up to a power of two; less if [most] is less. A
          few times as many as there are domains are enough. [most]: so many elements at most, in equal shares: a part
          that is full takes the element out that was not used for longest among its own, though others may have room.
          It is given to [evicted] when the lock is free again, by the domain that added one; in native code also where
          a signal handler raises meanwhile. In bytecode it may then go unseen.
          @raise Invalid_argument if [shards] is out of range, or [most] < 1. @raise Out_of_memory if there is none. *)

      val length : t -> int
      (** While others change the table, some number that it had, or nearly; so it is with the next. *)

      val evictions : t -> int

      val replace : key -> V.t -> t -> unit
      val find : key -> t -> V.t option
      val mem : key -> t -> bool
      val remove : key -> t -> unit

      val update : key -> (V.t option -> V.t option) -> t -> unit
      (** Gives what the key has to the function, and the key what that returns, in one step: [None] is no element. When
          the function raises an exception, nothing has changed. *)

      val fold : (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a
      (** One part after the other, each as it is when its turn comes. *)

      val iter : (key -> V.t -> unit) -> t -> unit
      val filter : (key -> V.t -> bool) -> t -> unit
      val clear : t -> unit

      val close : t -> unit
      (** Frees it. Operations that wait, and later ones, raise {!Moved}. If an exception comes, some parts are closed,
          and another call closes the others. *)

      val save : image Outheap_region.schema -> path:string -> t -> (unit, Outheap_region.error) result
      (** As [save] of a table, below: the elements of all parts at one moment, as an image that {!Image.map} maps like
          that of any table. The locks of all parts are taken, in their order, and held until the file is written; so
          operations of others wait meanwhile, and two calls of [save] wait for each other. Called by a function that
          runs with the lock of a part, it raises {!Borrowed}. @raise Moved if the table was closed. *)

      (**/**)

      val check_table : t -> string
    end

    (** {2 Images}

        A table can be saved to a file, which processes map as an image of a region ({!Outheap_region}): nothing is
        loaded, and they share its pages. Such a table is read-only. *)

    val save : image Outheap_region.schema -> path:string -> t -> (unit, Outheap_region.error) result
    (** As {!Outheap_region.save}, which says what it refuses: functions, for instance. Borrows. The order of use is not
        saved. Takes 6 words of the heap for each element, until it is done; texts are copied once, into the file. *)

    module Image : sig
      type t
      (** A table in a region. It is mapped as long as this, or any value from it, is reachable (see {!Outheap_region}).
          Any number of domains may read it at once. *)

      val map :
        image Outheap_region.schema ->
        path:string ->
        ?verify:[ `Header | `Full ] ->
        unit ->
        (t, Outheap_region.error) result
      (** As {!Outheap_region.map}: a file that is no image, of another schema, or damaged is refused; that its data are
          as they were written is checked with [`Full] alone, which reads all of it. [Damaged] as well if the image is
          none of a table, or the first key has another hash than in the program that saved it. *)

      val length : t -> int

      val find : key -> t -> V.t option
      (** The value itself, which lies in the region: a program that writes to it dies. Here and below:
          @raise Outheap_region.Deleted if the region was deleted or revoked. *)

      val mem : key -> t -> bool
      val fold : (key -> V.t -> 'a -> 'a) -> t -> 'a -> 'a
      val iter : (key -> V.t -> unit) -> t -> unit
      val region : t -> Outheap_region.t
    end

    (**/**)

    val check : unit -> string
    val check_table : t -> string
  end
end

(** {1 Cells for a program's own types}

    For algorithms that this module does not have. A cell is made from an ordinary value, whose outermost block is
    copied into it. [take] gives its fields and a {e token} for its memory; [put] writes another block of the same
    constructor there:

    {[
      let rec rev l acc =
        match l with
        | Nil -> acc
        | Cons _ -> (
            let cell = C.take l in
            match Cells.fields cell with
            | Cons (x, rest) -> rev rest (C.put (C.token cell) (Cons (x, acc)))
            | Nil -> acc)
    ]}

    The fields are to be read from what [take] returns: the compiler may read those of [l] later than it is written,
    when the cell has others.

    Each use is checked: a cell is taken once, a token is used once ({!Moved}); what is no cell of this functor, and
    fields that a cell cannot have, are refused ([Invalid_argument]). Cells that nobody takes stay; [live] counts them.
    Tokens have numbers, 2^17 of them for the cells of a page of 2 MiB: an older one may be taken for a new one. A
    pointer to a cell that was taken leads, after [put], to the cell that came into its place, which is the same value.

    Polymorphic variants and extensible types (such as [exn]) are refused: their blocks do not tell a constructor from
    a field, and one could become another under a stale pointer. So a type comes with an example that shows that it is
    none of these; see {!TYPE}.

    {b Not checked}: the type must have no mutable fields, since what is stored there is not seen by the collector; and
    no constructors with types that occur in their fields only (existential ones, and first-class modules), since a
    stale cell may be read while it changes. *)
module Cells : sig
  module type TYPE = sig
    type t

    val example : t
    (** A block that no polymorphic variant can have: of a constructor that is not the first of those with arguments,
        or with another number of fields than two, or with a first field that is a block, or an integer beyond 31 bits.
        For [Nil | Cons of int * t] it is [Cons (max_int, Nil)]. Where there is none, as for a pair of a [bool] and
        something else, change the order of the fields. It is looked at once. *)
  end

  type 'a taken
  (** A cell that was taken. *)

  val fields : 'a taken -> 'a
  (** A copy, in the heap, of the block that the cell had. *)

  (** @raise Invalid_argument if the example shows nothing. *)
  module Make (T : TYPE) () : sig
    type token

    val make : T.t -> T.t
    (** A new cell with a copy of this block: of a constructor with arguments, a tuple, or a record, with at most 62
        fields. These are immediates, constants, values of regions that are held, and cells of this functor.
        @raise Out_of_memory if there is none. *)

    val take : T.t -> T.t taken
    (** When it raises an exception, of a signal handler too, the cell is as it was. *)

    val token : T.t taken -> token

    val put : token -> T.t -> T.t
    (** As [make], into the memory of the token, which has kept its constructor: another one is refused. When it raises
        [Invalid_argument], the token stays valid. *)

    val drop : token -> unit
    (** Frees it. *)

    val live : unit -> int
    val memory : unit -> int

    val trim : unit -> int
    (** As that of lists, but cells stay where they are: who owns them is not known. *)

    (**/**)

    val check : unit -> string
  end
end
