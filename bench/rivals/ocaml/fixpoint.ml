(* SPDX-License-Identifier: MIT *)
(* The fixpoint of local_roots in OCaml alone. *)
let rec fixpoint f (x : float) =
  let y = f x in
  if x = y then y else fixpoint f y
