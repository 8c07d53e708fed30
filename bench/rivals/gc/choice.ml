(* SPDX-License-Identifier: MIT *)
(* Lists of the OCaml heap, handled by C. *)
type 'a t

let none : 'a. 'a t = Obj.magic 0

external style : persistent:bool -> unit = "gc_choice_style"
external return : 'a -> 'a t = "gc_choice_return"
external plus : 'a t -> 'a t -> 'a t = "gc_choice_plus"
external bind : 'a t -> ('a -> 'b t) -> 'b t = "gc_choice_bind"
external fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b = "gc_choice_fold"
