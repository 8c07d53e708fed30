(* SPDX-License-Identifier: MIT *)

(** What Rust raises. A program that does not contain this module gets [Failure] with the same text, and Rust prints
    exceptions of OCaml without their printers and backtraces. *)

(** A Rust function panicked. [file] is empty when the place is not known; [backtrace] is empty unless the environment
    asks for one ([RUST_BACKTRACE=1]). *)
exception Rust_panic of { message : string; file : string; line : int; backtrace : string }

(** A Rust function returned an error that is not an OCaml exception. [causes] are the errors behind it, the nearest
    first. *)
exception Rust_error of { message : string; causes : string list }
