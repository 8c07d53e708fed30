(* SPDX-License-Identifier: MIT *)
(* functional: what every implementation of a cell must do, for all to pass before any is measured. Random steps make,
   read, change and delete cells, beside collections of each kind. A value must be what it was made, and be alive, as
   long as a cell holds it; and be gone after its cell was deleted or changed. With several domains, each does this, and
   then reads and deletes what the next one has made. Arguments: seed, steps of each domain, domains. *)

type held =
  | Small of { id : int }
  | Text of { id : int; text : string }
  | Large of { id : int; words : int array } (* 'words' is in the major heap from the start *)
  | Closure of { id : int; f : int -> int }

(* An immediate, or a block. *)
let value id : Obj.t =
  match id mod 5 with
  | 0 -> Obj.repr id
  | 1 -> Obj.repr (Small { id })
  | 2 -> Obj.repr (Text { id; text = string_of_int id })
  | 3 -> Obj.repr (Large { id; words = Array.make 300 id })
  | _ -> Obj.repr (Closure { id; f = (fun x -> x + id) })

let is_value id (v : Obj.t) =
  if id mod 5 = 0 then Obj.is_int v && Obj.obj v = id
  else
    Obj.is_block v
    && (match (Obj.obj v : held) with
        | Small s -> id mod 5 = 1 && s.id = id
        | Text t -> id mod 5 = 2 && t.id = id && String.equal t.text (string_of_int id)
        | Large l -> id mod 5 = 3 && l.id = id && Array.length l.words = 300 && Array.for_all (Int.equal id) l.words
        | Closure c -> id mod 5 = 4 && c.id = id && c.f 1 = id + 1)

type element = { cell : Obj.t Cell.t; id : int }

type population = {
  seed : int;
  lots : Rng.t;
  mutable elements : element array; (* those up to [size] count *)
  mutable size : int;
  mutable made : int;
  alive : Obj.t Weak.t; (* by id; immediates are not in it *)
  ended : Bytes.t; (* by id: has its cell been deleted or changed? *)
}

let wrong p format = Printf.ksprintf (fun text -> Bench.fail "seed %d, value %d: %s" p.seed p.made text) format

let population seed steps =
  { seed; lots = Rng.create seed; elements = [||]; size = 0; made = 0; alive = Weak.create (steps + 2);
    ended = Bytes.make (steps + 2) 'n' }

(* A new value, which only the caller holds. *)
let[@inline never] next_value p =
  p.made <- p.made + 1;
  let v = value p.made in
  if Obj.is_block v then Weak.set p.alive p.made (Some v);
  v

let[@inline never] add p =
  let cell = Cell.create (next_value p) in
  let element = { cell; id = p.made } in
  if p.size = Array.length p.elements then p.elements <- Array.append p.elements (Array.make (max 16 p.size) element);
  p.elements.(p.size) <- element;
  p.size <- p.size + 1

let[@inline never] read p i =
  let { cell; id } = p.elements.(i) in
  if not (is_value id (Cell.get cell)) then wrong p "the cell of value %d does not hold it" id

let[@inline never] delete p i =
  read p i;
  Bytes.set p.ended p.elements.(i).id 'y';
  Cell.delete p.elements.(i).cell;
  p.size <- p.size - 1;
  p.elements.(i) <- p.elements.(p.size);
  p.elements.(p.size) <- p.elements.(0)

let[@inline never] change p i =
  read p i;
  let { cell; id } = p.elements.(i) in
  Bytes.set p.ended id 'y';
  let cell = Cell.modify cell (next_value p) in
  p.elements.(i) <- { cell; id = p.made }

let check_all p =
  for i = 0 to p.size - 1 do
    read p i
  done

(* What nothing holds any more is gone, and nothing else: after as many collections as it takes a deletion to be carried
   out. *)
let check_collected p =
  if p.size = 0 then p.elements <- [||]
  else Array.fill p.elements p.size (Array.length p.elements - p.size) p.elements.(0);
  for _ = 1 to 4 do
    Gc.full_major ()
  done;
  for id = 1 to p.made do
    let ended = Bytes.get p.ended id = 'y' in
    if ended && Weak.check p.alive id then wrong p "value %d is alive, but its cell has been deleted" id;
    if (not ended) && id mod 5 <> 0 && not (Weak.check p.alive id) then
      wrong p "value %d is gone, but a cell holds it" id
  done

let unused = Atomic.make []
let fill_minor_heap () = Atomic.set unused (List.init 20_000 Fun.id)

(* Numbers of cells go up and down, so that pools fill and empty. *)
let step p i =
  let below n = Rng.From.below p.lots n in
  let grows = i / 8_000 land 1 = 0 in
  match below 1000 with
  | 0 -> Gc.minor ()
  | 1 -> ignore (Gc.major_slice 0)
  | 2 -> fill_minor_heap ()
  | 3 when below 8 = 0 -> Gc.full_major ()
  | 4 when below 16 = 0 -> Gc.compact ()
  | 5 when below 8 = 0 -> check_all p
  | k when p.size = 0 || k < if grows then 600 else 200 -> add p
  | k when k < 750 -> delete p (below p.size)
  | k when k < 900 -> change p (below p.size)
  | _ -> read p (below p.size)

let run p steps =
  for i = 1 to steps do
    step p i
  done;
  check_all p

let clear p =
  while p.size > 0 do
    delete p (p.size - 1)
  done

let () =
  let seed = Bench.int_argument 1 ~default:1 and steps = Bench.int_argument 2 ~default:60_000 in
  let domains = Bench.int_argument 3 ~default:1 in
  let all = Array.init domains (fun i -> population (seed + i) steps) in
  let arrived = Atomic.make 0 in
  let wait_for_all time =
    Atomic.incr arrived;
    while Atomic.get arrived < time * domains do Domains.relax () done
  in
  Domains.copies domains (fun i ->
      run all.(i) steps;
      if domains = 1 then check_collected all.(i);
      wait_for_all 1;
      clear all.((i + 1) mod domains);
      wait_for_all 2;
      (* For deletions that are to be carried out here, while this domain is there. *)
      fill_minor_heap ();
      Gc.full_major ());
  Array.iter check_collected all;
  Bench.metric "values" (float (Array.fold_left (fun n p -> n + p.made) 0 all)) ""
