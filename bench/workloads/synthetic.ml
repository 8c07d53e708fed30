(* SPDX-License-Identifier: MIT *)
(* synthetic: cells and values that live and die by generation. A round allocates as many words as the minor heap holds; it creates
   small roots (a small value) and large roots (a value of the major heap), and fills the rest with values that the GC alone
   tracks. What does not survive its first minor collection dies a little after it was made; what does survive dies at the end of
   each round with a fixed probability. Argument: N, for 10 * 2^N rounds. *)

let small_roots = 10_000 (* per round *)
let large_roots = 20
let small_root_promotion = 0.2
let large_root_promotion = 1.
let root_survival = 0.99 (* of promoted roots, per round *)
let gc_promotion = 0.1
let gc_survival = 0.5
let short_life = 128 (* a short-lived root is deleted when this many younger ones exist *)
let minor_heap_words = 256 * 1024

(* A set that forgets its elements at random. *)
module Population = struct
  type 'a t = { mutable elements : 'a array; mutable size : int; filler : 'a }

  let create filler = { elements = Array.make 1024 filler; size = 0; filler }

  let add p x =
    if p.size = Array.length p.elements then p.elements <- Array.append p.elements (Array.make p.size p.filler);
    p.elements.(p.size) <- x;
    p.size <- p.size + 1

  let remove_any p =
    let i = Rng.below p.size in
    let x = p.elements.(i) in
    p.size <- p.size - 1;
    p.elements.(i) <- p.elements.(p.size);
    p.elements.(p.size) <- p.filler;
    x

  (* Forgets the share [1 - survival], and hands it to [bury]. *)
  let age p ~survival bury =
    let deaths = float p.size *. (1. -. survival) in
    let deaths = int_of_float deaths + Bool.to_int (Rng.chance (deaths -. Float.of_int (int_of_float deaths))) in
    for _ = 1 to deaths do
      bury (remove_any p)
    done
end

type block = { a : int; b : block option; c : int; d : int }

let small_value i = Array.make 2 i
let large_value i = Array.make 512 i
let gc_value i = { a = i; b = None; c = i; d = i }

let roots_made = ref 0

let make_root long_lived short_lived promotion v =
  let root = Cell.create v in
  incr roots_made;
  if Rng.chance promotion then Population.add long_lived root
  else begin
    let slot = !roots_made land (short_life - 1) in
    Option.iter Cell.delete short_lived.(slot);
    short_lived.(slot) <- Some root
  end

let run rounds =
  Cell.create [||] |> fun filler ->
  let roots = Population.create filler and tracked = Population.create (gc_value 0) in
  let short_lived = Array.make short_life None in
  for round = 1 to rounds do
    let start = Gc.minor_words () in
    let used () = Gc.minor_words () -. start in
    let share = float minor_heap_words /. float small_roots in
    for i = 1 to small_roots do
      make_root roots short_lived small_root_promotion (small_value (round + i));
      if i mod (small_roots / large_roots) = 0 then make_root roots short_lived large_root_promotion (large_value i);
      while used () < share *. float i do
        for _ = 1 to 4 do
          let v = gc_value i in
          if Rng.chance gc_promotion then Population.add tracked v
        done
      done
    done;
    Population.age roots ~survival:root_survival Cell.delete;
    Population.age tracked ~survival:gc_survival ignore
  done;
  Array.iter (Option.iter Cell.delete) short_lived;
  Population.age roots ~survival:0. Cell.delete;
  Cell.delete filler

let () =
  let n = Bench.int_argument 1 ~default:8 in
  Bench.timed (fun () -> run (10 lsl n));
  Bench.metric "roots created" (float !roots_made) ""
