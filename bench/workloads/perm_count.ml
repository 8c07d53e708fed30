(* SPDX-License-Identifier: MIT *)
(* perm_count: all permutations of [0; ..; n-1] in the list monad, each element of a list of choices in a cell. Whoever
   receives a list of choices consumes it, cells included. Many cells are alive at a time. With several domains, each
   does it all. Arguments: n, persistent|ephemeral, domains. *)

let take cell =
  let x = Cell.get cell in
  Cell.delete cell;
  x

module type Choices = sig
  type 'a t

  val none : 'a t
  val return : 'a -> 'a t
  val plus : 'a t -> 'a t -> 'a t (* all of the first, in any order, and then the second *)
  val fold : ('b -> 'a -> 'b) -> 'b -> 'a t -> 'b
end

(* Lists that are never changed: [plus] makes new nodes. *)
module Persistent : Choices = struct
  type 'a t = Nil | Cons of 'a Cell.t * 'a t

  let none = Nil
  let return x = Cons (Cell.create x, Nil)
  let rec plus l tail = match l with Nil -> tail | Cons (cell, rest) -> plus rest (Cons (cell, tail))
  let rec fold f acc = function Nil -> acc | Cons (cell, rest) -> fold f (f acc (take cell)) rest
end

(* Lists that are changed in place, as foreign code would do it. *)
module Ephemeral : Choices = struct
  type 'a t = Nil | Cons of { cell : 'a Cell.t; mutable rest : 'a t }

  let none = Nil
  let return x = Cons { cell = Cell.create x; rest = Nil }

  let rec plus l tail =
    match l with
    | Nil -> tail
    | Cons node ->
      let rest = node.rest in
      node.rest <- tail;
      plus rest l

  let rec fold f acc = function Nil -> acc | Cons node -> fold f (f acc (take node.cell)) node.rest
end

module Permutations (C : Choices) = struct
  let bind l f = C.fold (fun all x -> C.plus (f x) all) C.none l

  (* [x] inserted into [l], at every place. *)
  let rec insert x l =
    match l with
    | [] -> C.return [ x ]
    | y :: rest -> C.plus (C.return (x :: l)) (bind (insert x rest) (fun tail -> C.return (y :: tail)))

  let rec permutations = function [] -> C.return [] | x :: rest -> bind (permutations rest) (insert x)
  let count n = C.fold (fun count _ -> count + 1) 0 (permutations (List.init n Fun.id))
end

module With_persistent = Permutations (Persistent)
module With_ephemeral = Permutations (Ephemeral)

let () =
  let n = Bench.int_argument 1 ~default:10 and domains = Bench.int_argument 3 ~default:1 in
  let count =
    match Bench.argument 2 ~default:"persistent" with
    | "persistent" -> With_persistent.count
    | "ephemeral" -> With_ephemeral.count
    | style -> Bench.fail "persistent or ephemeral, not %s" style
  in
  let expected = List.fold_left ( * ) 1 (List.init n succ) in
  Bench.timed ~copies:domains (fun () ->
      Domains.copies domains (fun _ ->
          let found = count n in
          if found <> expected then Bench.fail "%d permutations instead of %d" found expected))
