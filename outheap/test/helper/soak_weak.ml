(* SPDX-License-Identifier: MIT *)
(* Weak arrays, ephemerons, finalisers, lazy values, and custom blocks. *)
open Soak_check

let weak () =
  let r = random 20 in
  let n = 5_000 in
  let strong = Array.init n (fun i -> if i land 1 = 0 then Some (cell i) else None) in
  let arrays = Array.init 20 (fun _ -> Weak.create n) in
  let refill w = Array.iteri (fun i c -> Weak.set w i (match c with None -> Some (cell i) | c -> c)) strong in
  Array.iter refill arrays;
  rounds (fun _ ->
    for _ = 1 to 400 do
      let w = arrays.(Random.State.int r 20) and i = Random.State.int r n in
      (match Weak.get w i with
       | Some c -> check "weak" c; if c.id <> i then fail "weak: %d is %d" i c.id
       | None -> if i land 1 = 0 then fail "weak: %d was lost" i);
      (match Weak.get_copy w i with Some c -> check "weak copy" c | None -> ());
      if Random.State.int r 4 = 0 then begin
        (* What only a weak pointer led to is held again. *)
        match Weak.get w i with
        | Some c when i land 1 = 1 -> strong.(i) <- Some c
        | _ -> ()
      end;
      if i land 1 = 1 && Random.State.int r 4 = 0 then strong.(i) <- None;
      Option.iter (check "strong") strong.(i);
      litter r 20
    done;
    let w = Weak.create n in
    refill w;
    Weak.blit arrays.(Random.State.int r 20) 0 w 0 (n / 2);
    arrays.(Random.State.int r 20) <- w)

module E = Ephemeron.K1
module Table = E.Make (struct type t = cell let equal = ( == ) let hash c = c.id end)

let ephemerons () =
  let r = random 21 in
  let n = 3_000 in
  let keys = Array.init n cell in
  let make key data = E.make key data in
  (* Data lead to the next key, so that rounds of marking follow one another. *)
  let chain = Array.init n (fun i -> make keys.(i) (cell (i + n))) in
  let table = Table.create 100 in
  rounds (fun _ ->
    for _ = 1 to 300 do
      let i = Random.State.int r n in
      (match E.query chain.(i) keys.(i) with
       | Some d -> check "data" d; if d.id <> i + n then fail "ephemerons: data of %d" i
       | None -> fail "ephemerons: the key %d lives, and its data do not" i);
      if Random.State.int r 5 = 0 then begin
        keys.(i) <- cell i;
        chain.(i) <- make keys.(i) { (cell (i + n)) with next = Some keys.(Random.State.int r n) }
      end;
      let key = cell (Random.State.int r 100_000) in
      Table.replace table key { (cell key.id) with next = Some key };
      (match Table.find_opt table key with
       | Some d -> check "table" d
       | None -> fail "ephemerons: not in the table");
      litter r 20
    done;
    if Random.State.int r 3 = 0 then Table.clean table)

(* Finalisers allocate, and keep what they get; each is called once, and not before its time. One may be called wherever
   the program allocates, also in the middle of the growth of a hash table, which is empty for that moment. So what they
   read is a string of bytes that is replaced as a whole. *)
let finalisers () =
  let r = random 22 in
  let calls = Hashtbl.create 1000 and raised_again = ref [] and made = ref 0 and lasts = Atomic.make 0 in
  let alive = Array.make 2_000 None in
  let dead = ref (Bytes.make 1000 '0') in
  let is_dead id = id < Bytes.length !dead && Bytes.get !dead id = '1' in
  let set_dead id =
    if id >= Bytes.length !dead then dead := Bytes.cat !dead (Bytes.make (id + 1) '0');
    Bytes.set !dead id '1'
  in
  let finalise c =
    check "finalise" c;
    litter r 5;
    if not (is_dead c.id) then fail "finalisers: %d is alive" c.id;
    Hashtbl.replace calls c.id (1 + Option.value ~default:0 (Hashtbl.find_opt calls c.id));
    raised_again := c :: !raised_again
  in
  rounds (fun _ ->
    for _ = 1 to 500 do
      let i = Random.State.int r 2_000 in
      Option.iter (fun c -> check "alive" c; set_dead c.id) alive.(i);
      let c = { (cell !made) with next = Some (cell (- !made)) } in
      incr made;
      Gc.finalise finalise c;
      Gc.finalise_last (fun () -> Atomic.incr lasts; litter r 3) c;
      alive.(i) <- Some c;
      litter r 30
    done;
    List.iter (fun c -> check "raised again" c; Option.iter (check "below it") c.next) !raised_again;
    if Random.State.bool r then raised_again := []);
  Array.iter (Option.iter (fun c -> set_dead c.id)) alive;
  Array.fill alive 0 2_000 None;
  raised_again := [];
  for _ = 1 to 4 do Gc.full_major (); raised_again := [] done;
  if Hashtbl.length calls <> !made then fail "finalisers: %d of %d were called" (Hashtbl.length calls) !made;
  Hashtbl.iter (fun id n -> if n <> 1 then fail "finalisers: %d was called %d times" id n) calls;
  if Atomic.get lasts <> !made then fail "finalisers: %d of %d last ones" (Atomic.get lasts) !made

(* Several domains force the same values: each is computed once, and the others wait or try again. *)
let lazies () =
  let r = random 23 in
  rounds (fun _ ->
    let n = 20_000 in
    let counts = Array.init n (fun _ -> Atomic.make 0) in
    let values =
      Array.init n (fun i -> lazy (Atomic.incr counts.(i); if i land 15 = 0 then live (Array.make 20 i); cell i)) in
    let rest = Array.map (fun l -> lazy (Lazy.force l).text) values in (* some become pointers to what they yield *)
    let rec force l = try Lazy.force l with CamlinternalLazy.Undefined -> Domain.cpu_relax (); force l in
    let body k () =
      let r = random (100 + k) in
      for step = 1 to n do
        let i = if step land 1 = 0 then Random.State.int r n else ((step * 7) + (k * 13)) mod n in
        check "lazies" (force values.(i));
        if force rest.(i) <> string_of_int i then fail "lazies: text %d" i;
        if step land 63 = 0 then litter r 10
      done
    in
    let others = List.init (1 + !beside) (fun k -> Domain.spawn (body k)) in
    body 9 ();
    List.iter Domain.join others;
    Array.iteri (fun i l ->
      check "lazies, at last" (force l);
      if Atomic.get counts.(i) <> 1 then fail "lazies: %d was computed %d times" i (Atomic.get counts.(i))) values;
    litter r 2_000)

(* Treiber's stack, exchanges: no cell may be lost, or be there twice. *)
let atomics () =
  let n = 4_000 in
  let stack = Atomic.make [] and place = Atomic.make (cell n) in
  let rec push c = let l = Atomic.get stack in if not (Atomic.compare_and_set stack l (c :: l)) then push c in
  let rec pop () =
    match Atomic.get stack with
    | [] -> None
    | c :: rest as l -> if Atomic.compare_and_set stack l rest then Some c else pop ()
  in
  for i = 0 to n - 1 do push (cell i) done;
  rounds (fun round ->
    let body k () =
      let r = random ((round * 10) + k) in
      for _ = 1 to 1_500 do
        (match pop () with
         | Some c ->
           check "atomics" c;
           litter r 2;
           let c = { c with next = None } in
           let c = if Random.State.bool r then Atomic.exchange place c else c in
           check "exchange" c;
           push c
         | None -> ());
        litter r 3
      done
    in
    let other = Domain.spawn (body 1) in
    body 2 ();
    Domain.join other;
    let ids = List.sort compare ((Atomic.get place).id :: List.map (fun c -> c.id) (Atomic.get stack)) in
    if ids <> List.init (n + 1) Fun.id then fail "atomics: a cell was lost, or is there twice")

(* Custom blocks whose finaliser, in C, records what called it. *)
type custom
external custom : int -> custom = "soak_custom"
external custom_value : custom -> int = "soak_custom_value" [@@noalloc]
external finalised : unit -> int = "soak_finalised" [@@noalloc]
external finalised_elsewhere : unit -> int = "soak_finalised_elsewhere" [@@noalloc]

let customs () =
  let r = random 24 in
  let n = 20_000 in
  let a = Array.init n custom and made = ref n in
  rounds (fun _ ->
    for _ = 1 to 5_000 do
      let i = Random.State.int r n in
      if custom_value a.(i) <> i then fail "customs: %d is %d" i (custom_value a.(i));
      a.(i) <- custom i;
      incr made;
      if i land 7 = 0 then litter r 8
    done);
  Gc.full_major ();
  Gc.full_major ();
  if finalised_elsewhere () > 0 then fail "customs: %d finalised outside of a domain" (finalised_elsewhere ());
  if finalised () < (!made - n) / 2 then fail "customs: %d of %d finalised" (finalised ()) (!made - n);
  Array.iteri (fun i c -> if custom_value c <> i then fail "customs, at last: %d" i) a

let tests =
  [ "weak", weak; "ephemerons", ephemerons; "finalisers", finalisers; "lazies", lazies; "atomics", atomics;
    "customs", customs ]
