(* SPDX-License-Identifier: MIT *)
(* A cheap generator (xorshift) that gives the same numbers with every OCaml version. *)
let state = ref 0x1F123BB5

let next () =
  let x = !state in
  let x = x lxor (x lsl 13) in
  let x = x lxor (x lsr 7) in
  let x = x lxor (x lsl 17) in
  state := x;
  x land max_int

let below n = (next () lsr 8) mod n

(* True with probability [p]. *)
let chance p = float (next () lsr 22) < p *. 0x1p40

let shuffle a =
  for i = Array.length a - 1 downto 1 do
    let j = below (i + 1) in
    let x = a.(i) in
    a.(i) <- a.(j);
    a.(j) <- x
  done
