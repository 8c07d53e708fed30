(* SPDX-License-Identifier: MIT *)
(* What Rust calls. The types are those of src/lib.rs, in the generated module My_binding. *)
open My_binding

let count text =
  let words = List.filter (( <> ) "") (String.split_on_char ' ' text) in
  let words = List.filter (fun word -> not (is_ignored word)) words in
  let add known word =
    match List.partition (fun entry -> entry.word = word) known with
    | [ { word; times } ], others -> { word; times = times + 1 } :: others
    | _ -> { word; times = 1 } :: known
  in
  match words with
  | [] -> invalid_arg "no words"
  | _ -> List.sort compare (List.fold_left add [] words)
