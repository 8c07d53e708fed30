(* SPDX-License-Identifier: MIT *)
external size : int -> unit = "binding_size"
external keep : int -> 'a -> unit = "binding_keep"
external kept : int -> 'a = "binding_kept"
external drop : int -> unit = "binding_drop"
external observe : 'a -> unit = "binding_observe"
external is_alive : unit -> bool = "binding_is_alive"
external list : unit -> 'a list = "binding_list"
external pools : unit -> int = "binding_pools"
