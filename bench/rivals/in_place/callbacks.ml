(* SPDX-License-Identifier: MIT *)
(* A table of C, in whose entries a field is registered with the runtime. *)
external add : (int -> int) -> int = "callbacks_add" [@@noalloc] (* the number of the entry *)
external replace : int -> (int -> int) -> unit = "callbacks_replace" [@@noalloc]
external call : int -> int -> int = "callbacks_call"
external remove : int -> unit = "callbacks_remove" [@@noalloc]
