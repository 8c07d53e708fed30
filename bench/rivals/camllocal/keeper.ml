(* SPDX-License-Identifier: MIT *)
external keep : int -> unit = "keep"
