(* SPDX-License-Identifier: MIT *)
(* A custom block of OCaml's heap that owns a root. The GC ends both: there is no other way to delete them. *)
type 'a t

external create : 'a -> 'a t = "owned_create"
external get : 'a t -> 'a = "owned_get"

let delete _ = ()
