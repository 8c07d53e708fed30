(* SPDX-License-Identifier: MIT *)
(* A cheap generator (xorshift) that gives the same numbers with every OCaml version. *)
type t = { mutable state : int }

let create seed = { state = 0x1F123BB5 + (seed * 0x9E3779B97F4A7C1) }

(* Numbers from a separate generator: what runs on several domains needs one for each. *)
module From = struct
  let next t =
    let x = t.state in
    let x = x lxor (x lsl 13) in
    let x = x lxor (x lsr 7) in
    let x = x lxor (x lsl 17) in
    t.state <- x;
    x land max_int

  let below t n = (next t lsr 8) mod n

  (* True with probability [p]. *)
  let chance t p = float (next t lsr 22) < p *. 0x1p40
end

let shared = create 0
let next () = From.next shared
let below n = From.below shared n
let chance p = From.chance shared p

let shuffle a =
  for i = Array.length a - 1 downto 1 do
    let j = below (i + 1) in
    let x = a.(i) in
    a.(i) <- a.(j);
    a.(j) <- x
  done
