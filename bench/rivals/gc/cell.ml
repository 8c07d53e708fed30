(* SPDX-License-Identifier: MIT *)
(* A one-field block of the OCaml heap, handled by C: what a cell costs when the GC can reach it. *)
type 'a t

external create : 'a -> 'a t = "gc_cell_create"
external get : 'a t -> 'a = "gc_cell_get" [@@noalloc]
external modify : 'a t -> 'a -> 'a t = "gc_cell_modify" [@@noalloc]
external delete : 'a t -> unit = "gc_cell_delete" [@@noalloc]
