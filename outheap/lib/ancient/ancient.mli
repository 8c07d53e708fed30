(* SPDX-License-Identifier: MIT *)

(** The interface of the library Ancient 0.10, over {!Outheap_region}: programs that were written for it compile
    unchanged. It is written anew.

    Better here: {!delete} is safe, whatever pointers are left; comparison, hashing and marshalling work; an
    attached file needs no address that is chosen by hand. Different: values with lazy parts that are not
    forced, channels and the like are refused ([Invalid_argument]) instead of copied; a write to what was marked raises
    SIGSEGV instead of corrupting it. Memory goes back with the runtime variant on OCaml 5 only; elsewhere it stays
    until exit. *)

type 'a ancient
(** A value outside the heap. *)

val mark : 'a -> 'a ancient
(** Copies a value and all that it refers to out of the heap. @raise Failure without memory. @raise Invalid_argument if
    it refers to something that cannot be copied; the message says what and where. *)

val follow : 'a ancient -> 'a
(** The copy. @raise Invalid_argument ["deleted"] after {!delete}. *)

val delete : 'a ancient -> unit
(** {!follow} does not work any more. The memory goes back when no pointer to the copy is left.
    @raise Invalid_argument ["deleted"] the second time. *)

val is_ancient : 'a -> bool
(** Is this a block of some region? *)

val address_of : 'a -> nativeint
(** The address of a block; 0 for what is not one. *)

(** {1 Values in files} *)

type md
(** An attached file. *)

val attach : Unix.file_descr -> nativeint -> md
(** Attaches a file, which is empty or was made by {!share}. It must be open for reading, and for writing if {!share} is
    called. The second argument is not used: each value has its place. @raise Failure if the file holds something
    else. *)

val detach : md -> unit
(** Closes the file. Values that were got from it stay as long as they are used. *)

val share : md -> int -> 'a -> 'a ancient
(** [share md key v] copies [v] into the file, under a key from 0 to {!max_key}; what was there before can no longer be
    got, but keeps its space. One process at a time may do that. @raise Invalid_argument for a bad key, or as {!mark}.
    @raise Failure if the file cannot be written. *)

val get : md -> int -> 'a ancient
(** The value of a key. Its type is what the caller says. @raise Not_found if there is none. @raise Failure if the file
    is damaged or was made by another version of OCaml. *)

val max_key : int
(** 1023 *)

(** {1 With sizes} *)

type info = { i_size : int  (** bytes *) }

val mark_info : 'a -> 'a ancient * info
val share_info : md -> int -> 'a -> 'a ancient * info
