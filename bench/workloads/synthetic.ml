(* SPDX-License-Identifier: MIT *)
(* synthetic: cells and values that live and die by generation. A round allocates as many words as the minor heap holds;
   it creates small roots (a small value) and large roots (a value of the major heap), and fills the rest with values
   that the GC alone tracks. What does not survive its first minor collection dies a little after it was made; what does
   survive dies at the end of each round with a fixed probability. With several domains, each does it all.
   Arguments: name=value, for any of the names below. *)

type parameters = {
  mutable n : int; (* for 10 * 2^n rounds *)
  mutable domains : int;
  mutable small_roots : int; (* per round *)
  mutable large_roots : int;
  mutable small_root_promotion : float;
  mutable large_root_promotion : float;
  mutable root_survival : float; (* of promoted roots, per round *)
  mutable gc_promotion : float;
  mutable gc_survival : float;
  mutable short_life : int; (* a short-lived root is deleted when this many younger ones exist; a power of 2 *)
  mutable minor_heap_words : int;
  mutable small_value_words : int;
  mutable large_value_words : int;
}

let p =
  { n = 8; domains = 1; small_roots = 10_000; large_roots = 20; small_root_promotion = 0.2; large_root_promotion = 1.;
    root_survival = 0.99; gc_promotion = 0.1; gc_survival = 0.5; short_life = 128; minor_heap_words = 256 * 1024;
    small_value_words = 2; large_value_words = 512 }

let count least set = (fun text ->
  match int_of_string_opt text with
  | Some x when x >= least -> set x; true
  | _ -> false), Printf.sprintf "a whole number, %d or more" least

let share set = (fun text ->
  match float_of_string_opt text with
  | Some x when x >= 0. && x <= 1. -> set x; true
  | _ -> false), "a number from 0 to 1"

let names =
  [ ("n", count 0 (fun x -> p.n <- x)); ("domains", count 1 (fun x -> p.domains <- x));
    ("small_roots", count 1 (fun x -> p.small_roots <- x)); ("large_roots", count 0 (fun x -> p.large_roots <- x));
    ("small_root_promotion", share (fun x -> p.small_root_promotion <- x));
    ("large_root_promotion", share (fun x -> p.large_root_promotion <- x));
    ("root_survival", share (fun x -> p.root_survival <- x)); ("gc_promotion", share (fun x -> p.gc_promotion <- x));
    ("gc_survival", share (fun x -> p.gc_survival <- x)); ("short_life", count 1 (fun x -> p.short_life <- x));
    ("minor_heap_words", count 4096 (fun x -> p.minor_heap_words <- x));
    ("small_value_words", count 1 (fun x -> p.small_value_words <- x));
    ("large_value_words", count 1 (fun x -> p.large_value_words <- x)) ]

let read argument =
  match String.index_opt argument '=' with
  | None -> Bench.fail "name=value, not %s; the names: %s" argument (String.concat ", " (List.map fst names))
  | Some i ->
    let name = String.sub argument 0 i and text = String.sub argument (i + 1) (String.length argument - i - 1) in
    (match List.assoc_opt name names with
     | None -> Bench.fail "no parameter %s; the names: %s" name (String.concat ", " (List.map fst names))
     | Some (set, expected) -> if not (set text) then Bench.fail "%s: %s is expected, not %s" name expected text)

(* A set that forgets its elements at random. *)
module Population = struct
  type 'a t = { mutable elements : 'a array; mutable size : int; filler : 'a; lots : Rng.t }

  let create lots filler = { elements = Array.make 1024 filler; size = 0; filler; lots }

  let add p x =
    if p.size = Array.length p.elements then p.elements <- Array.append p.elements (Array.make p.size p.filler);
    p.elements.(p.size) <- x;
    p.size <- p.size + 1

  let remove_any p =
    let i = Rng.From.below p.lots p.size in
    let x = p.elements.(i) in
    p.size <- p.size - 1;
    p.elements.(i) <- p.elements.(p.size);
    p.elements.(p.size) <- p.filler;
    x

  (* Forgets the share [1 - survival], and hands it to [bury]. *)
  let age p ~survival bury =
    let deaths = float p.size *. (1. -. survival) in
    let deaths = int_of_float deaths + Bool.to_int
      (Rng.From.chance p.lots (deaths -. Float.of_int (int_of_float deaths))) in
    for _ = 1 to deaths do
      bury (remove_any p)
    done
end

type block = { a : int; b : block option; c : int; d : int }

let gc_value i = { a = i; b = None; c = i; d = i }

(* Returns the number of roots made. *)
let run rounds seed =
  let lots = Rng.create seed and made = ref 0 in
  let filler = Cell.create [||] in
  let roots = Population.create lots filler and tracked = Population.create lots (gc_value 0) in
  let short_lived = Array.make p.short_life None in
  let make_root promotion v =
    let root = Cell.create v in
    incr made;
    if Rng.From.chance lots promotion then Population.add roots root
    else begin
      let slot = !made land (p.short_life - 1) in
      Option.iter Cell.delete short_lived.(slot);
      short_lived.(slot) <- Some root
    end
  in
  let share = float p.minor_heap_words /. float p.small_roots in
  for round = 1 to rounds do
    let start = Gc.minor_words () in
    let used () = Gc.minor_words () -. start in
    for i = 1 to p.small_roots do
      make_root p.small_root_promotion (Array.make p.small_value_words (round + i));
      let large_so_far i = i * p.large_roots / p.small_roots in
      for _ = large_so_far (i - 1) + 1 to large_so_far i do
        make_root p.large_root_promotion (Array.make p.large_value_words i)
      done;
      while used () < share *. float i do
        for _ = 1 to 4 do
          let v = gc_value i in
          if Rng.From.chance lots p.gc_promotion then Population.add tracked v
        done
      done
    done;
    Population.age roots ~survival:p.root_survival Cell.delete;
    Population.age tracked ~survival:p.gc_survival ignore
  done;
  Array.iter (Option.iter Cell.delete) short_lived;
  Population.age roots ~survival:0. Cell.delete;
  Cell.delete filler;
  !made

let () =
  Array.iteri (fun i argument -> if i > 0 then read argument) Sys.argv;
  if p.short_life land (p.short_life - 1) <> 0 then
    Bench.fail "short_life: a power of 2 is expected, not %d" p.short_life;
  let made = Array.make p.domains 0 in
  Bench.timed ~copies:p.domains (fun () -> Domains.copies p.domains (fun i -> made.(i) <- run (10 lsl p.n) i));
  Bench.metric "roots created" (float made.(0)) ""
