(* SPDX-License-Identifier: MIT *)
(* A table of C, whose entries own a root each. *)
external setup : unit -> unit = "callbacks_setup"
external add : (int -> int) -> int = "callbacks_add" [@@noalloc] (* the number of the entry *)
external replace : int -> (int -> int) -> unit = "callbacks_replace" [@@noalloc]
external call : int -> int -> int = "callbacks_call"
external remove : int -> unit = "callbacks_remove" [@@noalloc]

let () = setup ()
