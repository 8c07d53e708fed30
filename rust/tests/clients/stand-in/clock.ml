(* SPDX-License-Identifier: MIT *)
(* The clock of the test program of ocaml-interop, which the functions that sleep drive. *)

external now : unit -> float = "rust_clock_now"
external has_begun : unit -> bool = "rust_sleep_has_begun"

(* Until the other thread sleeps. *)
let delay (_ : float) = while not (has_begun ()) do Thread.yield () done
