(* SPDX-License-Identifier: MIT *)
(* Code whose address is used as a foreign pointer. *)
let f a b = Sys.opaque_identity (a, b)
