(* SPDX-License-Identifier: MIT *)
(* Called by the Rust program. *)
type tree = Leaf | Node of tree * string * tree

let rec insert s = function
  | Leaf -> Node (Leaf, s, Leaf)
  | Node (l, t, r) as n ->
    let c = compare s t in
    if c < 0 then Node (insert s l, t, r) else if c > 0 then Node (l, t, insert s r) else n

let rec size = function Leaf -> 0 | Node (l, _, r) -> size l + 1 + size r

let () =
  Callback.register "empty" (fun () -> Leaf);
  Callback.register "insert" insert;
  Callback.register "size" size;
  Callback.register "collect" (fun full -> if full then Gc.compact () else Gc.minor ())
