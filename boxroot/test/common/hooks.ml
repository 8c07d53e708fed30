(* SPDX-License-Identifier: MIT *)

external take : int -> unit = "h_take" [@@noalloc]
external changed : int -> int = "h_changed" [@@noalloc]
external witness_in : unit -> unit = "h_witness_in" [@@noalloc]
external witness_out : unit -> unit = "h_witness_out" [@@noalloc]
external witness_saw : unit -> int * int * int * int = "h_witness_saw"
external replace_blocking : int -> unit = "h_replace_blocking" [@@noalloc]
external verify_heap : bool -> unit = "h_verify_heap" [@@noalloc]
external delete_between_cycles : Root.t array -> unit = "h_delete_between_cycles" [@@noalloc]
external undeleted : unit -> int = "h_undeleted" [@@noalloc]
external domain_slot : unit -> int = "h_domain_slot" [@@noalloc]
external call_while_attaching : int -> unit = "h_call_while_attaching"
external scan_that_promotes_nothing : unit -> unit = "h_scan_that_promotes_nothing" [@@noalloc]
external read_beside_the_scan : Root.t array -> unit = "h_read_beside_the_scan" [@@noalloc]
external were_read : Root.t array -> bool = "h_were_read" [@@noalloc]
external mark_after_an_end : unit -> unit = "h_mark_after_an_end" [@@noalloc]
external end_is_awaited : unit -> bool = "h_end_is_awaited" [@@noalloc]
external ended_meanwhile : unit -> bool = "h_ended_meanwhile" [@@noalloc]
