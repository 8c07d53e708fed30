(* SPDX-License-Identifier: MIT *)
(* How often each number came, of numbers from 0 up. Numbers below 64 have a bucket each, others share one with those of
   the same power of two and the same next five bits; so what is read is never below what came, and less than 1/32
   above it. Adding allocates nothing, and costs some nanoseconds. *)

let exact = 64
let half = exact / 2

(* [count] is the sum of [counts]; [longest] is the greatest number that came, 0 before. *)
type t = { counts : int array; mutable count : int; mutable longest : int }

(* A number of [Sys.int_size - 1] bits is shifted so often, at most. *)
let most_shifts = Sys.int_size - 1 - 6
let create () = { counts = Array.make ((most_shifts + 2) * half) 0; count = 0; longest = 0 }

let reset t =
  Array.fill t.counts 0 (Array.length t.counts) 0;
  t.count <- 0;
  t.longest <- 0

(* n is in [half, exact) after so many shifts: the bucket is that after those of fewer. *)
let rec bucket n shifts = if n < exact then (shifts * half) + n else bucket (n lsr 1) (shifts + 1)

(* The greatest number of a bucket. *)
let greatest i =
  if i < exact then i
  else
    let shifts = (i / half) - 1 in
    ((i - (shifts * half) + 1) lsl shifts) - 1

let add_times t n times =
  let n = max n 0 in
  let i = bucket n 0 in
  t.counts.(i) <- t.counts.(i) + times;
  t.count <- t.count + times;
  if n > t.longest then t.longest <- n

let add t n = add_times t n 1

(* The least number that is not exceeded by this share of those that came; 0 if none has. *)
let at t share =
  let rank = max 1 (int_of_float (Float.ceil (share *. float t.count))) in
  let rec go i before =
    let upto = before + t.counts.(i) in
    if upto >= rank || i = Array.length t.counts - 1 then min (greatest i) t.longest else go (i + 1) upto
  in
  if t.count = 0 then 0 else go 0 0

let shares = [ ("50 %", 0.5); ("99 %", 0.99); ("99.9 %", 0.999); ("99.99 %", 0.9999); ("longest", 1.) ]

(* "count=3,50 %=17,…": one line. *)
let to_string t =
  String.concat ","
    (Printf.sprintf "count=%d" t.count :: List.map (fun (name, s) -> Printf.sprintf "%s=%d" name (at t s)) shares)

(* The figures of such a line. *)
let of_string line =
  List.filter_map
    (fun part ->
      match String.split_on_char '=' part with [ name; n ] -> Some (name, int_of_string n) | _ -> None)
    (String.split_on_char ',' line)
