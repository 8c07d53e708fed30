(* SPDX-License-Identifier: MIT *)
(* Between the program and its plugin. *)
let value : (string * float * (int * string list)) option ref = ref None
