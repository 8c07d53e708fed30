(* SPDX-License-Identifier: MIT *)
(* What all parts share: time, chance, and blocks that tell whether they are what they were.

   A cell holds its number, a word that follows from it, and blocks of its own that do, too. A cell that was freed while
   it was in use is overwritten, by the free list or by the next block, so that `check` fails, or the program does. *)

let seconds = ref 1.
let seed = ref 1
let began = ref 0.
let fail format = Printf.ksprintf failwith format
let over () = Unix.gettimeofday () -. !began > !seconds

(* At least two rounds, and until the time is over. *)
let weak_in_domains = ref true (* domains that end leave weak pointers *)

let rounds f =
  let rec go i = if i < 2 || not (over ()) then (f i; go (i + 1)) in
  go 0

let random n = Random.State.make [| !seed; n |]
let live v = ignore (Sys.opaque_identity v)
let mix n = (n * 0x9E3779B97F4A7C1) lxor (n lsr 7)

type cell = { id : int; word : int; text : string; mutable pair : (int * float) option; mutable next : cell option }

let cell id =
  { id; word = mix id; text = string_of_int id; pair = Some (id, float_of_int id); next = None }

let check what c =
  if c.word <> mix c.id then fail "%s: cell %d: word" what c.id;
  if c.text <> string_of_int c.id then fail "%s: cell %d: text %S" what c.id c.text;
  match c.pair with
  | Some (i, f) when i = c.id && f = float_of_int i -> ()
  | _ -> fail "%s: cell %d: pair" what c.id

(* Garbage of several sizes, some of which survives a minor collection. *)
let kept = Domain.DLS.new_key (fun () -> Array.make 64 (Obj.repr 0))

let litter r n =
  let kept = Domain.DLS.get kept in
  for _ = 1 to n do
    let size = match Random.State.int r 100 with 0 -> 300 + Random.State.int r 3000 | k -> 1 + (k / 8) in
    kept.(Random.State.int r 64) <- Obj.repr (Array.make size (ref size))
  done

(* A heap that is worth a helper. *)
let ballast = ref [||]

(* Runs a part, while `beside` domains litter, and look at cells of their own. *)
let beside = ref 0

let with_company f =
  let stop = Atomic.make false in
  let body i () =
    let r = random (1000 + i) in
    let own = Array.init 5_000 cell in
    while not (Atomic.get stop) do
      litter r 200;
      let i = Random.State.int r 5_000 and j = Random.State.int r 5_000 in
      let c = own.(i) in
      own.(i) <- own.(j);
      own.(j) <- c;
      check "company" own.(i)
    done;
    Array.iter (check "company, at last") own
  in
  ballast := Array.init 60_000 cell;
  let domains = List.init !beside (fun i -> Domain.spawn (body i)) in
  let finish () =
    Atomic.set stop true;
    List.iter Domain.join domains;
    Array.iter (check "ballast") !ballast
  in
  match f () with
  | () -> finish ()
  | exception e ->
    let trace = Printexc.get_raw_backtrace () in
    finish ();
    Printexc.raise_with_backtrace e trace
