(* SPDX-License-Identifier: MIT *)
(* A C array of roots. A slot holds a root or none. *)
external make : int -> unit = "slots_make" (* so many slots, all without a root *)
external release : unit -> unit = "slots_release" (* gives the array back; its roots must have been deleted *)
external create : int -> 'a -> unit = "slots_create" [@@noalloc] (* in a slot without a root *)
external modify : int -> 'a -> unit = "slots_modify" [@@noalloc]
external delete : int -> unit = "slots_delete" [@@noalloc]

external fill : int -> int -> 'a -> unit = "slots_fill" [@@noalloc]
(** [fill first last v]: new roots that hold [v] in the slots without a root of [first, last). *)

(* slot i: a new root that holds the i-th element *)
external fill_from : 'a array -> unit = "slots_fill_from" [@@noalloc]
external shuffle : unit -> unit = "slots_shuffle" [@@noalloc] (* the roots change places at random *)
external delete_all : unit -> unit = "slots_delete_all" [@@noalloc]

external delete_from : int -> unit = "slots_delete_from" [@@noalloc] (* those from this slot on *)

external delete_but : int -> unit = "slots_delete_but" [@@noalloc]
(** All but one in so many, in the order in which they stand. *)

external delete_by_thread : unit -> float = "slots_delete_by_thread"
(** All, by a thread that OCaml does not know; the seconds it took. The caller keeps the domain lock. *)

external pieces : unit -> int = "slots_pieces" [@@noalloc]
(** Of how many pieces of 16 KiB, aligned, the roots take some. *)
