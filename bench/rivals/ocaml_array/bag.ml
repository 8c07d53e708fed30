(* SPDX-License-Identifier: MIT *)
(* The same data in an OCaml array. *)
let held : Obj.t array ref = ref [||]
let count = ref 0
let create capacity = held := Array.make capacity (Obj.repr 0)

let add v =
  !held.(!count) <- Obj.repr v;
  incr count
