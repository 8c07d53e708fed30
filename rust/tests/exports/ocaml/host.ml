(* SPDX-License-Identifier: MIT *)
(* What Rust imports. *)

exception Closed
exception Refused of string * float
exception Pair of (int * bool)
exception Located of { file : string; line : int }

let add a b = a + b
let fail text : unit = failwith text
let identity x = x
let pair x y = (x, y)
let counter () = 42

let nested depth how =
  match how with
  | 0 -> depth
  | 1 -> raise Not_found
  | _ -> Exports.frame (fun n -> n) (Int.abs depth) (how - 2)
