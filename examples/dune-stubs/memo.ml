(* SPDX-License-Identifier: MIT *)
external store : int -> string -> unit = "memo_store"
external find : int -> string option = "memo_find"

external swap_last : Obj.t -> Obj.t = "last_swap"
(** Keeps a value, and returns the one kept before ([()] at first). *)
