(* SPDX-License-Identifier: MIT *)
(* The same lists in OCaml alone. *)
type 'a t = Empty | Node of { held : 'a; mutable next : 'a t }

let is_persistent = ref false
let style ~persistent = is_persistent := persistent
let return held = Node { held; next = Empty }

let rec copied_onto list tail =
  match list with Empty -> tail | Node n -> copied_onto n.next (Node { held = n.held; next = tail })

let rec moved_onto list tail =
  match list with
  | Empty -> tail
  | Node n ->
    let rest = n.next in
    n.next <- tail;
    moved_onto rest list

let plus list tail = if !is_persistent then copied_onto list tail else moved_onto list tail
let rec fold f so_far = function Empty -> so_far | Node n -> fold f (f so_far n.held) n.next
let bind list f = fold (fun all x -> plus (f x) all) Empty list
