(* SPDX-License-Identifier: MIT *)
(* Lists of C, whose nodes are registered with the runtime. *)
type 'a t = int (* the address of the first node, or 0; disguised as an immediate *)

let none = 0

external style : persistent:bool -> unit = "choice_style"
external return : 'a -> 'a t = "choice_return"
external plus : 'a t -> 'a t -> 'a t = "choice_plus"
external bind : 'a t -> ('a -> 'b t) -> 'b t = "choice_bind"
external fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b = "choice_fold"
