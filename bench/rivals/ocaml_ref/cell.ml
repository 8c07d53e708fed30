(* SPDX-License-Identifier: MIT *)
(* A mutable record of the OCaml heap. *)
type 'a t = { mutable contents : 'a }

let create contents = { contents }
let get cell = cell.contents

let modify cell v =
  cell.contents <- v;
  cell

let delete cell = cell.contents <- Obj.magic ()
