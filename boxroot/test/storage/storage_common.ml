(* SPDX-License-Identifier: MIT *)
(* What the tests of storages share. *)

open Root

type storage = int
type handle = int

external raw_create : string -> storage = "s_create"
external raw_add : storage -> 'a -> Root.t = "s_add"
external add_here : storage -> 'a -> Root.t = "s_add_here"
external here : storage -> handle = "s_here"
external create_in : handle -> 'a -> Root.t = "s_create_in"
external raw_clear : storage -> bool = "s_clear"
external delete : storage -> unit = "s_delete"
external delete_elsewhere : storage -> unit = "s_delete_elsewhere"
external report : unit -> int = "s_report"
external wide : 'a -> 'a -> Root.t = "s_wide"
external wide_get : Root.t -> int -> 'a = "s_wide_get"
external wide_delete : Root.t -> unit = "s_wide_delete"
external count : storage -> int = "s_count"
external name : storage -> string = "s_name"
external error : unit -> string = "s_error"
external eperm : storage -> unit = "s_eperm"
external at_end : storage -> storage -> storage -> Obj.t = "s_at_end"
external finalised : unit -> int = "s_finalised"
external arm : int -> int -> unit = "o_arm"
external disarm : unit -> unit = "o_disarm"
external failures : unit -> int = "o_failures"

let create name = match raw_create name with 0 -> fail "no storage: %s" (error ()) | s -> s
let checked r = if r = none then fail "no root: %s" (error ()) else r
let add s v = checked (raw_add s v)
let add_here s v = checked (add_here s v)
let clear s = if not (raw_clear s) then fail "not cleared: %s" (error ())
