(* SPDX-License-Identifier: MIT *)
type tree = Leaf | Node of tree * float * tree

external build : int -> tree = "tree_build"
external iterate : (float -> unit) -> tree -> unit = "tree_iterate"
external map : (float -> float) -> tree -> tree = "tree_map"
