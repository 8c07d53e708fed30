(* SPDX-License-Identifier: MIT *)
(* Data that are changed, copied and collected while they are marked and swept. *)
open Soak_check

(* Cells change places through registers alone, so that each is now and then where marking has been already. *)
let shuffle r (a : cell option array) what steps =
  let n = Array.length a in
  for _ = 1 to steps do
    let i = Random.State.int r n and j = Random.State.int r n in
    let c = a.(i) and d = a.(j) in
    a.(i) <- None;
    a.(j) <- None;
    if Random.State.int r 8 = 0 then litter r 8;
    if i = j then a.(i) <- c
    else begin
      a.(i) <- d;
      a.(j) <- c;
      Option.iter (check what) d;
      match (c, d) with
      | Some c, Some d ->
        let old = c.next in
        c.next <- d.next;
        d.next <- old
      | _ -> fail "%s: a cell is missing" what
    end
  done

let all r (a : cell option array) what =
  ignore r;
  let seen = Bytes.make (Array.length a) '0' in
  Array.iter (function
    | None -> fail "%s: a cell is missing" what
    | Some c ->
      check what c;
      Option.iter (check what) c.next;
      if Bytes.get seen c.id = '1' then fail "%s: cell %d twice" what c.id;
      Bytes.set seen c.id '1') a

let cells n =
  let a = Array.init n (fun i -> Some (cell i)) in
  Array.iter (fun c -> let c = Option.get c in c.next <- Some (cell (c.id + n))) a;
  a

let graph () =
  let r = random 1 and a = cells 60_000 in
  rounds (fun _ -> shuffle r a "graph" 30_000; all r a "graph")

(* Deep lists: marking must neither recurse nor lose what does not fit its stack. *)
let lists () =
  let r = random 2 in
  let l = ref (List.init 150_000 (fun i -> cell i)) in
  rounds (fun round ->
    l := if round land 1 = 0 then List.rev !l else List.map (fun c -> { c with next = None }) !l;
    litter r 5_000;
    let n = List.fold_left (fun n c -> check "lists" c; n + 1) 0 !l in
    if n <> 150_000 then fail "lists: %d cells" n;
    if round mod 7 = 3 then Gc.full_major ())

(* Blits that overlap, fills, parts and appended arrays, beside the numbers that they should have. *)
let arrays () =
  let r = random 3 in
  let n = 20_000 in
  let a = Array.init n cell and m = Array.init n Fun.id in
  rounds (fun _ ->
    for _ = 1 to 200 do
      let length = 1 + Random.State.int r (n / 8) in
      let i = Random.State.int r (n - length) and j = Random.State.int r (n - length) in
      (match Random.State.int r 8 with
       | 0 ->
         let id = Random.State.int r 1_000_000 in
         Array.fill a i length (cell id);
         Array.fill m i length id
       | 1 ->
         let part = Array.sub a i length in
         litter r 100;
         Array.blit part 0 a j length;
         Array.blit (Array.sub m i length) 0 m j length
       | 2 ->
         let ids = Array.init length (fun k -> (k * 31) + i) in
         Array.blit (Array.append (Array.map cell ids) [| cell 1 |]) 0 a i length;
         Array.blit ids 0 m i length
       | _ -> Array.blit a i a j length; Array.blit m i m j length);
      litter r 50
    done;
    Array.iteri (fun i c -> check "arrays" c; if c.id <> m.(i) then fail "arrays: %d is %d, not %d" i c.id m.(i)) a)

(* Bytes and large blocks come and go; floats in flat arrays. *)
let bytes () =
  let r = random 4 in
  let of_ size =
    (size, Bytes.make size (Char.chr (size land 255)), Array.make (1 + (size mod 700)) (float_of_int size)) in
  let a = Array.init 200 of_ in
  rounds (fun _ ->
    for _ = 1 to 150 do
      let size = match Random.State.int r 40 with
        | 0 -> Random.State.int r 4_000_000
        | 1 | 2 -> Random.State.int r 100_000
        | _ -> Random.State.int r 2_000 in
      a.(Random.State.int r 200) <- of_ size;
      litter r 20
    done;
    Array.iter (fun (size, b, f) ->
      if Bytes.length b <> size then fail "bytes: length";
      for i = 0 to min 50 size - 1 do
        if Bytes.get b (size - 1 - i) <> Char.chr (size land 255) then fail "bytes: contents of %d" size
      done;
      Array.iter (fun x -> if x <> float_of_int size then fail "bytes: floats of %d" size) f) a)

(* Large blocks of pointers, which are marked in parts. *)
let large () =
  let r = random 5 in
  let a = Array.init 6 (fun k -> cells (5_000 * (k + 1))) in
  rounds (fun round ->
    Array.iter (fun b -> shuffle r b "large" 2_000) a;
    let k = Random.State.int r 6 in
    a.(k) <- Array.copy a.(k);
    litter r 2_000;
    if round mod 3 = 0 then Array.iter (fun b -> all r b "large") a);
  Array.iter (fun b -> all r b "large") a

let marshal () =
  let r = random 6 in
  let a = ref (cells 20_000) in
  rounds (fun round ->
    let s = Marshal.to_bytes !a (if round land 1 = 0 then [] else [ Marshal.No_sharing ]) in
    litter r 2_000;
    let b : cell option array = Marshal.from_bytes s 0 in
    all r b "marshal";
    all r !a "marshal, source";
    shuffle r b "marshal" 2_000;
    a := b)

(* Functions of the runtime that walk blocks while the helper marks them. *)
let walks () =
  let r = random 7 in
  let a = cells 3_000 in
  let words = Obj.reachable_words (Obj.repr a) in
  rounds (fun _ ->
    litter r 3_000;
    let n = Obj.reachable_words (Obj.repr a) in
    if n <> words then fail "walks: %d words, not %d" n words;
    let b = Array.map (Option.map (fun c -> { c with next = c.next })) a in
    if compare a b <> 0 || Hashtbl.hash a <> Hashtbl.hash b then fail "walks: not equal";
    shuffle r a "walks" 500;
    let of_copy : cell option array = Obj.obj (Obj.dup (Obj.repr a)) in
    all r of_copy "walks")

(* Settings change meanwhile, minor heaps are resized, and larger ones reserved. *)
let sizes () =
  let r = random 8 and a = cells 30_000 in
  rounds (fun _ ->
    let words = 4_096 * (1 + Random.State.int r 64) in
    Gc.set { (Gc.get ()) with minor_heap_size = words; space_overhead = 20 + Random.State.int r 200 };
    shuffle r a "sizes" 4_000;
    if Random.State.int r 10 = 0 then
      Gc.set { (Gc.get ()) with minor_heap_size = 262_144 * (1 + Random.State.int r 6) };
    shuffle r a "sizes" 4_000;
    all r a "sizes")

let collections () =
  let r = random 9 and a = cells 20_000 in
  rounds (fun _ ->
    shuffle r a "collections" 2_000;
    (match Random.State.int r 7 with
     | 0 -> Gc.compact ()
     | 1 -> Gc.full_major ()
     | 2 -> Gc.major ()
     | 3 -> for _ = 1 to 20 do Gc.minor () done
     | 4 -> ignore (Gc.major_slice (Random.State.int r 100_000))
     | 5 -> live (Gc.quick_stat ()); live (Gc.stat ())
     | _ -> litter r 5_000);
    all r a "collections")

(* References that are replaced in order. What the deletion barrier hands to the marker is much, with little below each
   of it: whoever takes it must take all of it, or the cycle does not end, and the heap keeps what was replaced. *)
let window () =
  let n = 200_000 and minor = 262_144 in
  Gc.set { (Gc.get ()) with minor_heap_size = minor };
  let w = Array.init n (fun i -> ref (Some i)) in
  Gc.full_major ();
  let words () = (Gc.quick_stat ()).heap_words in
  let most = 8 * (words () + minor) in
  rounds (fun round ->
    let from = round * 4 * n in
    for i = from + n to from + (5 * n) - 1 do
      let r = w.(i mod n) in
      if !r <> Some (i - n) then fail "window: reference %d" i;
      w.(i mod n) <- ref (Some i);
      if i land 0xffff = 0 && words () > most then fail "window: %d words, of at most %d" (words ()) most
    done)

(* Until there is no memory, again and again; the part must run with a limit. *)
let memory () =
  let r = random 10 and a = cells 10_000 in
  let raised = ref 0 in
  rounds (fun round ->
    let hoard = ref [] in
    (try
       while true do
         hoard := Array.make (if round land 1 = 0 then 100_000 else 8_000_000) (Some (cell 1)) :: !hoard;
         if List.length !hoard > 4_000 then raise Exit
       done
     with Out_of_memory -> incr raised | Exit -> ());
    List.iter (fun b -> Option.iter (check "memory") b.(0)) !hoard;
    hoard := [];
    all r a "memory";
    Gc.full_major ();
    shuffle r a "memory" 5_000;
    all r a "memory");
  if !raised = 0 then fail "memory: there was always enough"

let tests =
  [ "graph", graph; "lists", lists; "arrays", arrays; "bytes", bytes; "large", large; "marshal", marshal;
    "walks", walks; "sizes", sizes; "collections", collections ]

let limited = [ "memory", memory ]
let short = [ "window", window ]
