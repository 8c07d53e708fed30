(* SPDX-License-Identifier: MIT *)
(* Lists of the OCaml heap, handled by C. *)
type 'a t

external style : persistent:bool -> unit = "gc_lists_style"
external return : 'a -> 'a t = "gc_lists_return"
external plus : 'a t -> 'a t -> 'a t = "gc_lists_plus"
external bind : 'a t -> ('a -> 'b t) -> 'b t = "gc_lists_bind"
external fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b = "gc_lists_fold"
