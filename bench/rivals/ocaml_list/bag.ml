(* SPDX-License-Identifier: MIT *)
(* The same data in an OCaml list. *)
let held : Obj.t list ref = ref []
let create _ = ()
let add v = held := Obj.repr v :: !held
