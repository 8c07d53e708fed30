(* SPDX-License-Identifier: MIT *)
(* Lists of C, whose nodes are registered with the runtime. *)
type 'a t (* the address of the first node, or 0, disguised as an immediate *)

external style : persistent:bool -> unit = "lists_style"
external return : 'a -> 'a t = "lists_return"
external plus : 'a t -> 'a t -> 'a t = "lists_plus"
external bind : 'a t -> ('a -> 'b t) -> 'b t = "lists_bind"
external fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b = "lists_fold"
