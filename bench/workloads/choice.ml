(* SPDX-License-Identifier: MIT *)
(* choice: perm_count with the list monad itself in foreign code. C keeps the lists, a root per element, and calls OCaml
   closures back. Persistent: putting two lists together makes new nodes, to which the elements go over; ephemeral:
   changes the nodes that are there. With several domains, each does it all. Arguments: n, persistent|ephemeral,
   domains. *)

(* [x] inserted into [l], at every place. *)
let rec insert x l =
  match l with
  | [] -> Lists.return [ x ]
  | y :: rest ->
    let here = Lists.return (x :: l) in
    Lists.plus here (Lists.bind (insert x rest) (fun tail -> Lists.return (y :: tail)))

let rec permutations = function [] -> Lists.return [] | x :: rest -> Lists.bind (permutations rest) (insert x)

let () =
  let n = Bench.int_argument 1 ~default:10 and domains = Bench.int_argument 3 ~default:1 in
  (match Bench.argument 2 ~default:"persistent" with
   | "persistent" -> Lists.style ~persistent:true
   | "ephemeral" -> Lists.style ~persistent:false
   | style -> Bench.fail "persistent or ephemeral, not %s" style);
  let expected = List.fold_left ( * ) 1 (List.init n succ) in
  Bench.timed ~copies:domains (fun () ->
      Domains.copies domains (fun _ ->
          let found = Lists.fold (fun count _ -> count + 1) 0 (permutations (List.init n Fun.id)) in
          if found <> expected then Bench.fail "%d permutations instead of %d" found expected))
