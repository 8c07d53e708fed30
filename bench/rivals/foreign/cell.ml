(* SPDX-License-Identifier: MIT *)
(* A root owned by C, handed to OCaml as an immediate. [modify] returns the root to use from now on. *)
type 'a t

external create : 'a -> 'a t = "cell_create" [@@noalloc]
external get : 'a t -> 'a = "cell_get" [@@noalloc]
external modify : 'a t -> 'a -> 'a t = "cell_modify" [@@noalloc]
external delete : 'a t -> unit = "cell_delete" [@@noalloc]

external setup : unit -> unit = "cell_setup"

let () = setup ()
