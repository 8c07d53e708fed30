(* SPDX-License-Identifier: MIT *)
(* Formulas such as "x * (x + 2) - 1", compiled to closures. *)
exception Error of string

let parse text =
  let at = ref 0 in
  let peek () = if !at < String.length text then text.[!at] else '\000' in
  let rec blanks () = if peek () = ' ' then (incr at; blanks ()) in
  let take c = blanks (); peek () = c && (incr at; true) in
  let rec number n =
    match peek () with
    | '0' .. '9' as c -> incr at; number ((10. *. n) +. float (Char.code c - 48))
    | _ -> n
  in
  let rec sum () = rest_of_sum (product ())
  and rest_of_sum left =
    if take '+' then (let right = product () in rest_of_sum (fun x -> left x +. right x))
    else if take '-' then (let right = product () in rest_of_sum (fun x -> left x -. right x))
    else left
  and product () = rest_of_product (atom ())
  and rest_of_product left =
    if take '*' then (let right = atom () in rest_of_product (fun x -> left x *. right x)) else left
  and atom () =
    if take 'x' then Fun.id
    else if take '(' then (
      let inner = sum () in
      if take ')' then inner else raise (Error "a parenthesis is open"))
    else
      match peek () with
      | '0' .. '9' -> let n = number 0. in fun _ -> n
      | _ -> raise (Error (Printf.sprintf "column %d" (!at + 1)))
  in
  let whole = sum () in
  blanks ();
  if !at < String.length text then raise (Error (Printf.sprintf "column %d" (!at + 1)));
  whole

let () =
  Callback.register "parse" parse;
  Callback.register "compact" Gc.compact
