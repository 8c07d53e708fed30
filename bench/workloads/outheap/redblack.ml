(* SPDX-License-Identifier: MIT *)
(* Red-black maps: balanced trees that are never changed in place, into which keys are inserted in a scattered order; a
   new one each round. Most nodes die soon, those of the tree itself live on.   redblack KEYS ROUNDS *)
let keys = Bench.int_argument 1 ~default:100_000
let rounds = Bench.int_argument 2 ~default:4

type color = Red | Black
type tree = Leaf | Node of color * tree * int * bool * tree

(* No red node has a red child: what breaks that below a black node is turned. *)
let balance_left left k3 v3 d =
  match left with
  | Node (Red, Node (Red, a, k1, v1, b), k2, v2, c) | Node (Red, a, k1, v1, Node (Red, b, k2, v2, c)) ->
    Node (Red, Node (Black, a, k1, v1, b), k2, v2, Node (Black, c, k3, v3, d))
  | _ -> Node (Black, left, k3, v3, d)

let balance_right a k1 v1 right =
  match right with
  | Node (Red, Node (Red, b, k2, v2, c), k3, v3, d) | Node (Red, b, k2, v2, Node (Red, c, k3, v3, d)) ->
    Node (Red, Node (Black, a, k1, v1, b), k2, v2, Node (Black, c, k3, v3, d))
  | _ -> Node (Black, a, k1, v1, right)

let rec insert tree k v =
  match tree with
  | Leaf -> Node (Red, Leaf, k, v, Leaf)
  | Node (color, left, key, _, right) when k = key -> Node (color, left, key, v, right)
  | Node (Red, left, key, value, right) ->
    if k < key then Node (Red, insert left k v, key, value, right) else Node (Red, left, key, value, insert right k v)
  | Node (Black, left, key, value, right) ->
    if k < key then balance_left (insert left k v) key value right else balance_right left key value (insert right k v)

let add tree k v =
  match insert tree k v with
  | Node (Red, left, key, value, right) -> Node (Black, left, key, value, right)
  | tree -> tree

let rec count = function
  | Leaf -> 0
  | Node (_, left, _, value, right) -> count left + (if value then 1 else 0) + count right

let () =
  for _ = 1 to rounds do
    let tree = ref Leaf in
    for i = 0 to keys - 1 do
      tree := add !tree (i * 7_919 mod keys) (i mod 10 = 0)
    done;
    let n = count !tree in
    if n <> (keys + 9) / 10 then Bench.fail "%d of %d keys" n keys
  done
