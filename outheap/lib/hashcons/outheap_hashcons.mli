(* SPDX-License-Identifier: MIT *)

(** Hash-consing: structurally equal values that are alive are one value, so that they can be compared with [==], and
    kept in tables by number.

    The interface is that of the library [hashcons] of Jean-Christophe Filliâtre: a program that uses its module
    [Hashcons] changes that name, and nothing else. Only the place of the values differs: with OCaml 5 and the runtime
    variant [_outheap], in cells {b outside the heap}. The collector neither marks nor moves them, a lookup allocates
    nothing, and a cell's memory goes back when no pointer leads to it, in slices beside the program. With the stock
    runtime and with OCaml 4.14 they are in the heap, in a weak table.

    {b Nodes are copied into their cell}, static ones and those of other cells included, with the strings, floats,
    tuples, lists and so on that they refer to, be they in the heap, in a region or in owned cells (a borrowed list);
    other hash-consed values and static constants are referred to. In the heap nodes are not copied, so what is borrowed
    there, or in a region that is to be deleted, must not be in one. So:
    - [equal] must compare with [==] only what is hash-consed itself (and immediates), as is usual; strings and the like
      by their contents;
    - a node must not be written to;
    - a node cannot refer to functions and objects (except static ones), exceptions' constructors, lazy values,
      channels, mutexes, bigarrays, and foreign pointers: [hashcons] raises [Invalid_argument], with the path of fields.
      A node refers to the heap through a root (Boxroot), whose address it holds as a [nativeint].

    Domains and threads may share a table; [equal] and [hash] may do what they like, raise exceptions and use the table
    included. [docs/guide/hashcons.md] has the rest. *)

type +'a hash_consed = private {
  hkey : int;  (** the hash, not negative *)
  tag : int;  (** unique in the process *)
  node : 'a;
}

val off_heap : bool
(** Are values outside the heap, in this process? *)

(** {1 With the polymorphic equality and hash of OCaml} *)

type 'a t
(** A table. It may be dropped; its values live on while they are reachable. *)

val create : int -> 'a t
(** [create n] is an empty table with room for about [n] values (a million at most). It grows. *)

val clear : 'a t -> unit
(** Empties the table. Its values live on while they are reachable; equal ones that are made afterwards are others. *)

val hashcons : 'a t -> 'a -> 'a hash_consed
(** [hashcons t d] is the value of [t] whose node is equal to [d]; if there is none, a new one, with a copy of [d].
    The hash is not that of [Hashtbl.hash], which looks at ten numbers and strings of a node, but looks at 64, and
    passes over what lies below hash-consed values.
    @raise Invalid_argument if [d] cannot be copied. @raise Out_of_memory if there is none for it. *)

val iter : ('a hash_consed -> unit) -> 'a t -> unit
(** Calls a function for each value that is in the table now and has not been found to be unreachable, in no particular
    order. Values that are made meanwhile are passed over. Off the heap it first finishes a collection of cells that is
    under way. Cost: memory for an array of them. *)

val stats : 'a t -> int * int * int * int * int * int
(** Length of the table, values in it, sum of the lengths of buckets, least, median, and greatest length. A bucket is a
    slot here, with one value or none. *)

(** {1 With given ones} *)

module type HashedType = sig
  type t

  val equal : t -> t -> bool
  val hash : t -> int
end

module type S = sig
  type key
  type t

  val create : int -> t
  val clear : t -> unit
  val hashcons : t -> key -> key hash_consed
  val iter : (key hash_consed -> unit) -> t -> unit
  val stats : t -> int * int * int * int * int * int
end

module Make (H : HashedType) : S with type key = H.t
(** [H.equal] is called with nodes of the table on the left; equal nodes must have the same hash. Cost of a lookup that
    finds a value: [H.hash], two or three cache misses, [H.equal] for each value with the same hash. *)

(** {1 With a hash that the caller computes}

    The hash of a term is computed from those of its subterms, which whoever hash-conses them has at hand: a program
    that passes it along neither computes it again nor keeps it in its terms. *)

module type EqualType = sig
  type t

  val equal : t -> t -> bool
end

module Make_with_hash (E : EqualType) : sig
  type key = E.t
  type t

  val create : int -> t
  val clear : t -> unit

  val hashcons : t -> int -> key -> key hash_consed
  (** [hashcons t h d] is as [S.hashcons t d] with the hash [h land max_int]. Equal nodes must come with the same hash:
      one that comes with another is another value. *)

  val iter : (key hash_consed -> unit) -> t -> unit
  val stats : t -> int * int * int * int * int * int
end

val hkey_of_node : 'a -> int
(** [hkey_of_node d] is [v.hkey] if [d] is [v.node] of a value [v] off the heap: [d] itself, not what is equal to it. It
    is -1 otherwise: always, if values are in the heap; and for nodes that are not in their cell: immediates, empty
    arrays, hash-consed values, and static functions, objects and exceptions' constructors. So a program that keeps
    nodes and not values can tell in constant time that a node is hash-consed, in whatever table, and with which hash.
    Any thread and domain may ask. Cost: a call of C; the lock and two cache misses if [d] lies in a cell.

    Such a program needs [off_heap]: there a node that is in its cell keeps its value, which is found again. In the heap
    a value ends when nothing refers to the value itself, so that an equal node can be made while the first is in
    use. *)

(** {1 Maps and sets of hash-consed values}

    Balanced trees, ordered by tag. They keep their keys alive. *)

module Hmap : sig
  type (+'a, +!'b) t
  type 'a key = 'a hash_consed

  val empty : ('a, 'b) t
  val add : 'a key -> 'b -> ('a, 'b) t -> ('a, 'b) t

  val find : 'a key -> ('a, 'b) t -> 'b
  (** @raise Not_found if there is none. *)

  val remove : 'a key -> ('a, 'b) t -> ('a, 'b) t
  val mem : 'a key -> ('a, 'b) t -> bool
  val iter : ('a key -> 'b -> unit) -> ('a, 'b) t -> unit
  val map : ('b -> 'c) -> ('a, 'b) t -> ('a, 'c) t
  val mapi : ('a key -> 'b -> 'c) -> ('a, 'b) t -> ('a, 'c) t
  val fold : ('a key -> 'b -> 'c -> 'c) -> ('a, 'b) t -> 'c -> 'c
end

(** As [Set.S] of the standard library, with the exceptions below. A function that finds nothing raises [Not_found]. *)
module Hset : sig
  type 'a t
  type 'a elt = 'a hash_consed

  val empty : 'a t
  val is_empty : 'a t -> bool
  val mem : 'a elt -> 'a t -> bool
  val add : 'a elt -> 'a t -> 'a t
  val singleton : 'a elt -> 'a t
  val remove : 'a elt -> 'a t -> 'a t
  val union : 'a t -> 'a t -> 'a t
  val subset : 'a t -> 'a t -> bool
  val inter : 'a t -> 'a t -> 'a t
  val diff : 'a t -> 'a t -> 'a t
  val equal : 'a t -> 'a t -> bool
  val compare : 'a t -> 'a t -> int
  val choose : 'a t -> 'a elt
  val choose_opt : 'a t -> 'a elt option
  val cardinal : 'a t -> int
  val for_all : ('a elt -> bool) -> 'a t -> bool
  val exists : ('a elt -> bool) -> 'a t -> bool
  val partition : ('a elt -> bool) -> 'a t -> 'a t * 'a t
  val disjoint : 'a t -> 'a t -> bool
  val find : 'a elt -> 'a t -> 'a elt
  val find_opt : 'a elt -> 'a t -> 'a elt option
  val add_seq : 'a elt Seq.t -> 'a t -> 'a t
  val of_seq : 'a elt Seq.t -> 'a t
  val of_list : 'a elt list -> 'a t
  val split : 'a elt -> 'a t -> 'a t * bool * 'a t
  val iter : ('a elt -> unit) -> 'a t -> unit
  val fold : ('a elt -> 'b -> 'b) -> 'a t -> 'b -> 'b
  val map : ('a elt -> 'b elt) -> 'a t -> 'b t
  val filter : ('a elt -> bool) -> 'a t -> 'a t
  val filter_map : ('a elt -> 'b elt option) -> 'a t -> 'b t
  val elements : 'a t -> 'a elt list
  val to_seq : 'a t -> 'a elt Seq.t
  val min_elt : 'a t -> 'a elt
  val min_elt_opt : 'a t -> 'a elt option
  val max_elt : 'a t -> 'a elt
  val max_elt_opt : 'a t -> 'a elt option
  val find_first : ('a elt -> bool) -> 'a t -> 'a elt
  val find_first_opt : ('a elt -> bool) -> 'a t -> 'a elt option
  val find_last : ('a elt -> bool) -> 'a t -> 'a elt
  val find_last_opt : ('a elt -> bool) -> 'a t -> 'a elt option

  val intersect : 'a t -> 'a t -> bool
  (** Is an element in both sets? *)

  val find_any : ('a elt -> bool) -> 'a t -> 'a elt
  (** Some element for which that holds. *)

  val find_any_opt : ('a elt -> bool) -> 'a t -> 'a elt option

  val is_singleton : 'a t -> 'a elt option
  (** The element of a set that has only one. *)

  val bind : ('a elt -> 'b t) -> 'a t -> 'b t
  (** The union of the sets of all elements. *)
end

(** {1 Questions} *)

type memory = {
  cells : int;  (** in all tables, with those that were not found to be unreachable yet *)
  bytes : int;  (** in these cells *)
  freed : int;  (** cells, since the program began *)
  collections : int;  (** of cells *)
  late : int;  (** of these, those that had to be finished at the end of a major cycle, without slices *)
}

val memory : unit -> memory
(** All 0 if values are in the heap. *)

val collect : unit -> unit
(** [Gc.full_major], with all values freed to which no pointer leads. Needed only when memory shall be free at a certain
    moment. Without it, cells are collected with the cycles of the collector if there are few, or many of them are new,
    or the program did much work since. *)

val is_cell : Obj.t -> bool
(** Is this a block of a cell outside the heap? *)
