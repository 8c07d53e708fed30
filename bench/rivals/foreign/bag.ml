(* SPDX-License-Identifier: MIT *)
(* A C array of roots. *)
external create : int -> unit = "bag_create"
external add : 'a -> unit = "bag_add" [@@noalloc]
