(* SPDX-License-Identifier: MIT *)
(* Symbolic derivatives of hash-consed terms: equal terms are one value, so that results can be remembered by the number
   of a term, and equality is a comparison of pointers.

   ocamlfind ocamlopt -package outheap.hashcons -linkpkg terms.ml -o terms
   With the runtime variant (-I DIR -runtime-variant _outheap) terms lie outside the heap. The same program works with
   the library hashcons, if the next line says so. *)
module Hashcons = Outheap_hashcons

type term = node Hashcons.hash_consed
and node = X | Number of float | Function of string * term | Sum of term * term | Product of term * term

module Table = Hashcons.Make (struct
  type t = node

  let equal a b =
    match (a, b) with
    | X, X -> true
    | Number a, Number b -> a = b
    | Function (f, a), Function (g, b) -> f = g && a == b
    | Sum (a, b), Sum (c, d) | Product (a, b), Product (c, d) -> a == c && b == d
    | _ -> false

  let hash = function
    | X -> 1
    | Number n -> Hashtbl.hash n
    | Function (f, a) -> (31 * Hashtbl.hash f) + a.Hashcons.tag
    | Sum (a, b) -> (19 * ((19 * a.Hashcons.tag) + b.tag)) + 2
    | Product (a, b) -> (19 * ((19 * a.Hashcons.tag) + b.tag)) + 3
end)

let table = Table.create 1000
let x = Table.hashcons table X
let number n = Table.hashcons table (Number n)
let call f a = Table.hashcons table (Function (f, a))
let zero = number 0.
let one = number 1.

let ( + ) (a : term) (b : term) =
  if a == zero then b
  else if b == zero then a
  else Table.hashcons table (if a.tag < b.tag then Sum (a, b) else Sum (b, a))

let ( * ) (a : term) (b : term) =
  if a == zero || b == zero then zero
  else if a == one then b
  else if b == one then a
  else Table.hashcons table (if a.tag < b.tag then Product (a, b) else Product (b, a))

(* What is remembered keeps its terms alive. *)
let derivative () =
  let known = Hashtbl.create 1000 in
  let rec of_ (t : term) =
    match Hashtbl.find_opt known t.tag with
    | Some d -> d
    | None ->
        let d =
          match t.node with
          | X -> one
          | Number _ -> zero
          | Function ("sin", a) -> of_ a * call "cos" a
          | Function ("cos", a) -> of_ a * (number (-1.) * call "sin" a)
          | Function (f, _) -> failwith ("the derivative of " ^ f)
          | Sum (a, b) -> of_ a + of_ b
          | Product (a, b) -> (of_ a * b) + (a * of_ b)
        in
        Hashtbl.add known t.tag d;
        d
  in
  of_

let terms () =
  let n = ref 0 in
  Table.iter (fun _ -> incr n) table;
  !n

let () =
  let wave = call "sin" (x * x) in
  assert (call "sin" (x * x) == wave);
  let d = derivative () in
  let rec times n t = if n = 0 then t else times (n - 1) (d t) in
  let tenth = times 10 (wave * call "cos" x) in
  Printf.printf "%d terms\n" (terms ());
  (* All but the last one is forgotten, and goes when the collector finds out. *)
  let before = terms () in
  let rec size seen (t : term) =
    if not (Hashtbl.mem seen t.tag) then (
      Hashtbl.add seen t.tag ();
      match t.node with
      | X | Number _ -> ()
      | Function (_, a) -> size seen a
      | Sum (a, b) | Product (a, b) -> size seen a; size seen b)
  in
  let seen = Hashtbl.create 1000 in
  List.iter (size seen) [ tenth; x; zero; one ];
  for _ = 1 to 3 do Gc.full_major () done;
  let after = terms () in
  Printf.printf "the tenth derivative has %d different terms; %d of %d are left\n" (Hashtbl.length seen) after before;
  assert (after >= Hashtbl.length seen && after < before && (Sys.opaque_identity tenth).tag > 0)
