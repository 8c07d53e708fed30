(* SPDX-License-Identifier: MIT *)
(* Formulas of numbers, variables, + and *. The type is that of Rust, in the generated module Formula. *)
open Formula

exception Syntax_error of string

let tokens text =
  let words = Str.full_split (Str.regexp "[-+*() ]") text in
  List.filter (( <> ) " ") (List.map (function Str.Text s | Str.Delim s -> s) words)

let parse text =
  let rec sum left = function
    | "+" :: rest ->
      let right, rest = factors rest in
      sum (Sum (left, right)) rest
    | rest -> (left, rest)
  and product left = function
    | "*" :: rest ->
      let right, rest = atom rest in
      product (Product (left, right)) rest
    | rest -> (left, rest)
  and factors words =
    let left, rest = atom words in
    product left rest
  and formula words =
    let left, rest = factors words in
    sum left rest
  and atom = function
    | "(" :: rest -> (
      match formula rest with
      | inside, ")" :: rest -> (inside, rest)
      | _ -> raise (Syntax_error "a parenthesis is not closed"))
    | word :: rest -> (
      match (word.[0], float_of_string_opt word) with
      | 'a' .. 'z', None | 'A' .. 'Z', None -> (Variable word, rest)
      | _, Some number -> (Number number, rest)
      | _ -> raise (Syntax_error word))
    | [] -> raise (Syntax_error "something is missing at the end")
  in
  match formula (tokens text) with
  | result, [] -> result
  | _, word :: _ -> raise (Syntax_error word)

let rec eval = function
  | Number number -> number
  | Variable name -> variable name
  | Sum (a, b) -> eval a +. eval b
  | Product (a, b) -> eval a *. eval b
