(* SPDX-License-Identifier: MIT *)
(* Lists of C, whose nodes own a root each. *)
type 'a t (* the address of the first node, or 0, disguised as an immediate *)

external setup : unit -> unit = "lists_setup"
external style : persistent:bool -> unit = "lists_style"
external return : 'a -> 'a t = "lists_return" [@@noalloc]
external plus : 'a t -> 'a t -> 'a t = "lists_plus" [@@noalloc]
external bind : 'a t -> ('a -> 'b t) -> 'b t = "lists_bind"
external fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b = "lists_fold"

let () = setup ()
