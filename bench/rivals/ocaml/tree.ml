(* SPDX-License-Identifier: MIT *)
(* The trees of the workload trees in OCaml alone. *)
type tree = Leaf | Node of tree * float * tree

let build depth =
  let next = ref 0. in
  let rec build depth =
    if depth = 0 then Leaf
    else begin
      let left = build (depth - 1) in
      let key = !next in
      next := key +. 1.;
      let right = build (depth - 1) in
      Node (left, key, right)
    end
  in
  build depth

let rec iterate (f : float -> unit) = function
  | Leaf -> ()
  | Node (left, key, right) -> iterate f left; f key; iterate f right

let rec map (f : float -> float) = function
  | Leaf -> Leaf
  | Node (left, key, right) ->
    let left = map f left in
    let key = f key in
    Node (left, key, map f right)
