(* SPDX-License-Identifier: MIT *)
(* The functions that `calls` measures. Numbers go in bare, and floats come out so: the types of Rust say it, and C gets
   the same. *)
external none_int : (int[@untagged]) -> (int[@untagged]) -> int = "none_int_byte" "none_int" [@@noalloc]

external none_float : (float[@unboxed]) -> (float[@unboxed]) -> (float[@unboxed]) = "none_float_byte" "none_float"
[@@noalloc]

external read_int : (int[@untagged]) -> int = "read_int_byte" "read_int"
external read_float : (float[@unboxed]) -> bool = "read_float_byte" "read_float" (* is it above 0? *)
external read_string : string -> int = "read_string" (* its length *)
external read_closure : (int -> int) -> (int -> int) -> bool = "read_closure" (* are they the same? *)
external write_int : (int[@untagged]) -> int = "write_int_byte" "write_int"
external write_float : (float[@unboxed]) -> (float[@unboxed]) = "write_float_byte" "write_float"
external write_string : string -> int = "write_string" (* its length *)
external write_closure : (int -> int) -> (int[@untagged]) -> int = "write_closure_byte" "write_closure" (* calls it *)

(* Calls it so many times, first with 0, then with results. *)
external call_many : (int -> int) -> (int[@untagged]) -> int = "call_many_byte" "call_many"
external release_many : (int[@untagged]) -> unit = "release_many_byte" "release_many"
external attach_many : (int[@untagged]) -> unit = "attach_many_byte" "attach_many"
