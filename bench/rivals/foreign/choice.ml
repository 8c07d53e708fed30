(* SPDX-License-Identifier: MIT *)
(* Lists of C, whose nodes own a root each. *)
type 'a t = int (* the address of the first node, or 0; disguised as an immediate *)

let none = 0

external setup : unit -> unit = "choice_setup"
external style : persistent:bool -> unit = "choice_style"
external return : 'a -> 'a t = "choice_return" [@@noalloc]
external plus : 'a t -> 'a t -> 'a t = "choice_plus" [@@noalloc]
external bind : 'a t -> ('a -> 'b t) -> 'b t = "choice_bind"
external fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b = "choice_fold"

let () = setup ()
