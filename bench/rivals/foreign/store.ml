(* SPDX-License-Identifier: MIT *)
(* A hash table of C: from integers to OCaml values, at most so many; the oldest entry makes room. *)
external create : most:int -> unit = "store_create"
external put : int -> 'a -> unit = "store_put" [@@noalloc]
external get : int -> 'a option = "store_get"
external clear : unit -> unit = "store_clear"
