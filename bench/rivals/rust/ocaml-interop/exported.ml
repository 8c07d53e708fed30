(* SPDX-License-Identifier: MIT *)
(* As ../exported.ml; a number that goes in bare comes out bare. *)
external none_int : (int[@untagged]) -> (int[@untagged]) -> (int[@untagged]) = "none_int_byte" "none_int" [@@noalloc]

external none_float : (float[@unboxed]) -> (float[@unboxed]) -> (float[@unboxed]) = "none_float_byte" "none_float"
[@@noalloc]

external read_int : (int[@untagged]) -> (int[@untagged]) = "read_int_byte" "read_int"
external read_float : (float[@unboxed]) -> bool = "read_float_byte" "read_float"
external read_string : string -> int = "read_string"
external read_closure : (int -> int) -> (int -> int) -> bool = "read_closure"
external write_int : (int[@untagged]) -> (int[@untagged]) = "write_int_byte" "write_int"
external write_float : (float[@unboxed]) -> (float[@unboxed]) = "write_float_byte" "write_float"
external write_string : string -> int = "write_string"
external write_closure : (int -> int) -> int -> int = "write_closure"
external call_many : (int -> int) -> (int[@untagged]) -> int = "call_many_byte" "call_many"
external release_many : (int[@untagged]) -> unit = "release_many_byte" "release_many"
external attach_many : (int[@untagged]) -> unit = "attach_many_byte" "attach_many"
