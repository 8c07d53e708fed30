(* SPDX-License-Identifier: MIT *)
(* globroots: 1,024 cells, few changes between two collections. At each step one cell is read and checked and then, with
   the shares of the test of global roots in OCaml's test suite: in 16 of 37 steps it gets a new value, in 16 it is
   deleted and another one created, in 4 there is a minor collection and in 1 a full major one. Half of the values are
   young. With several domains, each does it all. Arguments: steps, domains. *)

let cells_count = 1024
let old_values = Array.init cells_count string_of_int
let patterns = Array.map Bytes.of_string old_values

(* The [i]-th value: the same string each time, a fresh copy every other time. *)
let value_for lots i = if Rng.From.below lots 2 = 0 then old_values.(i) else Bytes.to_string patterns.(i)

let run steps seed =
  let lots = Rng.create seed in
  let cells = Array.init cells_count (fun i -> Cell.create (value_for lots i)) in
  let check i = if not (String.equal (Cell.get cells.(i)) old_values.(i)) then
    Bench.fail "cell %d has lost its value" i in
  for _ = 1 to steps do
    let i = Rng.From.below lots cells_count in
    check i;
    match Rng.From.below lots 37 with
    | 0 -> Gc.full_major ()
    | 1 | 2 | 3 | 4 -> Gc.minor ()
    | k when k <= 20 -> cells.(i) <- Cell.modify cells.(i) (value_for lots i)
    | _ ->
      Cell.delete cells.(i);
      cells.(i) <- Cell.create (value_for lots i)
  done;
  for i = 0 to cells_count - 1 do
    check i;
    Cell.delete cells.(i)
  done

let () =
  Gc.full_major ();
  let steps = Bench.int_argument 1 ~default:500_000 and domains = Bench.int_argument 2 ~default:1 in
  Bench.timed ~copies:domains (fun () -> Domains.copies domains (run steps))
