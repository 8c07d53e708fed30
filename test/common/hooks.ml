(* SPDX-License-Identifier: MIT *)

external take : int -> unit = "h_take" [@@noalloc]
external changed : int -> int = "h_changed" [@@noalloc]
external witness_in : unit -> unit = "h_witness_in" [@@noalloc]
external witness_out : unit -> unit = "h_witness_out" [@@noalloc]
external witness_saw : unit -> int * int * int * int = "h_witness_saw"
external replace_blocking : int -> unit = "h_replace_blocking" [@@noalloc]
external domain_slot : unit -> int = "h_domain_slot" [@@noalloc]
