(* SPDX-License-Identifier: MIT *)
(* The same lists in OCaml alone. *)
type 'a t = None_left | Node of { held : 'a; mutable next : 'a t }

let none = None_left
let is_persistent = ref false
let style ~persistent = is_persistent := persistent
let return held = Node { held; next = None_left }

let rec copied_onto list tail =
  match list with None_left -> tail | Node n -> copied_onto n.next (Node { held = n.held; next = tail })

let rec moved_onto list tail =
  match list with
  | None_left -> tail
  | Node n ->
    let rest = n.next in
    n.next <- tail;
    moved_onto rest list

let plus list tail = if !is_persistent then copied_onto list tail else moved_onto list tail
let rec fold f so_far = function None_left -> so_far | Node n -> fold f (f so_far n.held) n.next
let bind list f = fold (fun all x -> plus (f x) all) none list
