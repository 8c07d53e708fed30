(* SPDX-License-Identifier: MIT *)
(* As ../exported.ml; only functions that are written without the macro of the crate take bare numbers. *)
external none_int : (int[@untagged]) -> (int[@untagged]) -> (int[@untagged]) = "none_int_byte" "none_int" [@@noalloc]

external none_float : (float[@unboxed]) -> (float[@unboxed]) -> (float[@unboxed]) = "none_float_byte" "none_float"
[@@noalloc]

external read_int : int -> int = "read_int"
external read_float : float -> bool = "read_float"
external read_string : string -> int = "read_string"
external read_closure : (int -> int) -> (int -> int) -> bool = "read_closure"
external write_int : int -> int = "write_int"
external write_float : float -> float = "write_float"
external write_string : string -> int = "write_string"
external write_closure : (int -> int) -> int -> int = "write_closure"
external call_many : (int -> int) -> int -> int = "call_many"
external release_many : int -> unit = "release_many"
external attach_many : int -> unit = "attach_many"
