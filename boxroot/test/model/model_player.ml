(* SPDX-License-Identifier: MIT *)
(* The options of a run, and its players. *)

open Values

external storm : int -> int -> unit = "m_storm"
external born : unit -> Root.t * int = "m_born"

let seed = ref 0
let steps = ref 4000
let domains = ref 1
let threads = ref 1
let lives = ref 1
let idle_main = ref false
let full_every = ref 256
let trace = ref false
let restarts = ref true
let ephemerons = ref true

let room = 8192

type player = {
  label : string;
  seed : int;
  number : int;
  mutable random : int;
  mutable serial : int;
  mutable step : int;
  mutable doing : string;
  mutable target : int; (* how many roots it would like to have *)
  mutable n : int;
  roots : Root.t array; (* [0, n) *)
  kind : kind array;
  id : int array;
  aux : int array;
}

let next_number = Atomic.make 0

let player label seed =
  { label; seed; number = Atomic.fetch_and_add next_number 1; random = seed; serial = 0; step = 0; doing = "start";
    target = 50; n = 0;
    roots = Array.make room Root.none; kind = Array.make room Immediate; id = Array.make room 0;
      aux = Array.make room 0 }

(* splitmix, on 63 bits *)
let mix z =
  let z = (z lxor (z lsr 30)) * 0x3f58476d1ce4e5b9 in
  let z = (z lxor (z lsr 27)) * 0x14d049bb133111eb in
  z lxor (z lsr 31)

let random p bound =
  p.random <- p.random + 0x1e3779b97f4a7c15;
  (mix p.random land max_int) mod bound

let one_in p n = random p n = 0

let fresh_id p =
  p.serial <- p.serial + 1;
  (p.serial * 1009) + p.number

let complain p what =
  Printf.eprintf "FAILED: player %s (seed %d), step %d (%s): %s\n%!" p.label p.seed p.step p.doing what;
  Root.exit_now 1
