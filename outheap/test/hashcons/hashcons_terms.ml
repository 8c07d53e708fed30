(* SPDX-License-Identifier: MIT *)
(* Terms of all shapes, and a model of each in the heap. *)
open Hashcons_checks

type term = node Hashcons.hash_consed

and node =
  | Nil
  | Leaf of int
  | Text of string
  | Real of float
  | Wide of int64
  | Pair of term * term
  | Many of term list
  | Named of { name : string; sub : term; more : (int * string) option; values : float array }

module Node = struct
  type t = node

  let equal a b =
    match (a, b) with
    | Pair (a, b), Pair (c, d) -> a == c && b == d
    | Many a, Many b -> List.compare_lengths a b = 0 && List.for_all2 ( == ) a b
    | Named a, Named b -> a.name = b.name && a.sub == b.sub && a.more = b.more && a.values = b.values
    | (Pair _ | Many _ | Named _), _ | _, (Pair _ | Many _ | Named _) -> false
    | a, b -> a = b

  let hash = function
    | Pair (a, b) -> (19 * ((19 * a.Hashcons.tag) + b.tag)) + 1
    | Many l -> List.fold_left (fun h t -> (31 * h) + t.Hashcons.tag) 2 l
    | Named n -> Hashtbl.hash n.name + (7 * n.sub.tag)
    | n -> Hashtbl.hash n
end

module Table = Hashcons.Make (Node)

(* Many nodes with the same hash. *)
module Crowded = Hashcons.Make (struct
  include Node

  let hash n = Node.hash n land 3
end)

type shape =
  | SNil
  | SLeaf of int
  | SText of string
  | SReal of float
  | SWide of int64
  | SPair of shape * shape
  | SMany of shape list
  | SNamed of string * shape * (int * string) option * float array

let rec build add = function
  | SNil -> add Nil
  | SLeaf n -> add (Leaf n)
  | SText s -> add (Text (String.concat "" [ s ]))
  | SReal f -> add (Real (opaque f))
  | SWide n -> add (Wide (Int64.add n 0L))
  | SPair (a, b) ->
      let a = build add a in
      let b = build add b in
      add (Pair (a, b))
  | SMany l -> add (Many (List.map (build add) l))
  | SNamed (name, sub, more, values) ->
      add (Named { name = name ^ ""; sub = build add sub; more; values = Array.copy values })

let rec shape (t : term) =
  match t.node with
  | Nil -> SNil
  | Leaf n -> SLeaf n
  | Text s -> SText s
  | Real f -> SReal f
  | Wide n -> SWide n
  | Pair (a, b) -> SPair (shape a, shape b)
  | Many l -> SMany (List.map shape l)
  | Named { name; sub; more; values } -> SNamed (name, shape sub, more, values)

let rec same (t : term) s =
  match (t.node, s) with
  | Nil, SNil -> true
  | Leaf a, SLeaf b -> a = b
  | Text a, SText b -> a = b
  | Real a, SReal b -> a = b
  | Wide a, SWide b -> a = b
  | Pair (a, b), SPair (c, d) -> same a c && same b d
  | Many a, SMany b -> List.compare_lengths a b = 0 && List.for_all2 same a b
  | Named a, SNamed (name, sub, more, values) ->
      a.name = name && same a.sub sub && a.more = more && a.values = values
  | _ -> false

let rec depth = function
  | SPair (a, b) -> 1 + max (depth a) (depth b)
  | SMany l -> List.fold_left (fun d s -> max d (1 + depth s)) 0 l
  | SNamed (_, s, _, _) -> 1 + depth s
  | _ -> 0

(* Values that a list of terms leads to. *)
let reachable terms =
  let seen = Hashtbl.create 100 in
  let rec go (t : term) =
    if not (Hashtbl.mem seen t.tag) then (
      Hashtbl.add seen t.tag ();
      match t.node with
      | Pair (a, b) -> go a; go b
      | Many l -> List.iter go l
      | Named n -> go n.sub
      | _ -> ())
  in
  List.iter go terms;
  Hashtbl.length seen

let count iter t =
  let n = ref 0 in
  iter (fun _ -> incr n) t;
  !n
