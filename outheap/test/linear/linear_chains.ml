(* SPDX-License-Identifier: MIT *)
(* Lists and queues beside those of the heap: random operations, with exceptions from the functions that they call. *)
open Linear_checks

module type CONTENTS = sig
  include L.STORED

  val get : stored -> t
  val make : int -> t
  val number : t -> int
end

(* [f], which raises when the nth call begins. *)
let stopping n f =
  let left = ref n in
  fun x ->
    decr left;
    if !left = 0 then raise Stop;
    f x

let rec is_sorted compare = function a :: (b :: _ as l) -> compare a b <= 0 && is_sorted compare l | _ -> true

module Model (C : CONTENTS) () = struct
  module Q = Lists.Make (C) ()
  module Fifo = L.Queue.Make (C) ()

  let numbers l = List.map C.number l
  let seen q = Q.borrow q (fun l -> List.map (fun s -> C.number (C.get s)) l)

  let step lists =
    let i = below (Array.length lists) in
    let q, l = lists.(i) in
    let both q l = lists.(i) <- (q, l) in
    match below 14 with
    | 0 | 1 | 2 | 3 ->
        let n = below 1000 in
        both (Q.cons (C.make n) q) (n :: l)
    | 4 | 5 -> (
        match (Q.uncons q, l) with
        | Some (v, q), n :: l -> check "uncons" (C.number v = n); both q l
        | None, [] -> ()
        | _ -> check "uncons: lengths" false)
    | 6 -> both (Q.rev q) (List.rev l)
    | 7 | 8 ->
        let j = below (Array.length lists) in
        if i <> j then begin
          let q', l' = lists.(j) in
          if below 2 = 0 then both (Q.append q q') (l @ l') else both (Q.rev_append q q') (List.rev_append l l');
          raises "the second is consumed" L.Moved (fun () -> Q.length q');
          lists.(j) <- (Q.create (), [])
        end
        else raises "a list and itself" L.Borrowed (fun () -> Q.append q q)
    | 9 ->
        let f n = (n * 7) mod 1000 in
        both (Q.map (fun v -> C.make (f (C.number v))) q) (List.map f l)
    | 10 ->
        let p n = n land 3 <> 0 in
        if below 2 = 0 then both (Q.filter (fun v -> p (C.number v)) q) (List.filter p l)
        else begin
          let q, others = Q.partition (fun v -> p (C.number v)) q and l, l' = List.partition p l in
          check "partition" (seen others = l' && Q.length others = List.length l');
          (* The second one is whole: it is changed, is the end of another, or is forgotten. *)
          match below 3 with
          | 0 -> both (Q.append (Q.rev others) q) (List.rev l' @ l)
          | 1 -> both (Q.append q (Q.cons (C.make 5) others)) (l @ (5 :: l'))
          | _ -> both q l
        end
    | 11 ->
        let order a b = compare (a / 10) (b / 10) in
        both (Q.sort (fun a b -> order (C.number a) (C.number b)) q) (List.stable_sort order l)
    | 12 ->
        (* Exceptions on the way. *)
        let n = 1 + below 50 in
        (match below 4 with
        | 3 -> (
            let p n = n land 1 = 0 in
            match Q.partition (stopping n (fun v -> p (C.number v))) q with
            | q, others ->
                Q.close others;
                both q (List.filter p l)
            | exception Stop ->
                let before, after = (List.filteri (fun i _ -> i < n - 1) l, List.filteri (fun i _ -> i >= n - 1) l) in
                both q (List.filter p before @ List.filter (fun n -> not (p n)) before @ after))
        | 0 -> (
            let f n = (n * 7) mod 1000 in
            match Q.map (stopping n (fun v -> C.make (f (C.number v)))) q with
            | q -> both q (List.map f l)
            | exception Stop -> both q (List.mapi (fun i x -> if i < n - 1 then f x else x) l))
        | 1 -> (
            let p n = n land 1 = 0 in
            match Q.filter (stopping n (fun v -> p (C.number v))) q with
            | q -> both q (List.filter p l)
            | exception Stop -> both q (List.filteri (fun i x -> i >= n - 1 || p x) l))
        | _ -> (
            match Q.sort (stopping n (fun a b -> compare (C.number a) (C.number b))) q with
            | q -> both q (List.stable_sort compare l)
            | exception Stop -> ()));
        raises "fold" Stop (fun () -> Q.fold (fun _ _ -> raise Stop) () (Q.cons (C.make 1) (Q.create ())))
    | _ ->
        if below 3 = 0 then begin
          Q.close q;
          raises "closed" L.Moved (fun () -> Q.cons (C.make 1) q);
          both (Q.create ()) []
        end

  let lists steps =
    let all = Array.init 6 (fun _ -> (Q.create (), [])) in
    for n = 1 to steps do
      step all;
      let q, l = all.(below 6) in
      check "length" (Q.length q = List.length l);
      if n land 15 = 0 then check "contents" (seen q = l);
      if n land 1023 = 0 then begin
        whole "lists" (Q.check ());
        Gc.minor ();
        if n land 4095 = 0 then Gc.compact ()
      end
    done;
    Array.iter
      (fun (q, l) ->
        check "contents at the end" (seen q = l && numbers (Q.to_list q) = l);
        check "fold" (Q.fold (fun a v -> a + C.number v) 0 q = List.fold_left ( + ) 0 l);
        Q.close q)
      all;
    collect ();
    check "nothing is left" (Q.live () = 0);
    whole "lists" (Q.check ())

  let queues steps =
    let all = Array.init 4 (fun _ -> (Fifo.create (), Queue.create ())) in
    for n = 1 to steps do
      let q, m = all.(below 4) in
      (match below 8 with
      | 0 | 1 | 2 | 3 -> Fifo.push (C.make n) q; Queue.push n m
      | 4 | 5 | 6 -> check "pop" (Option.map C.number (Fifo.pop q) = Queue.take_opt m)
      | _ ->
          let q', m' = all.(below 4) in
          if q != q' then (if below 10 = 0 then begin Fifo.transfer q q'; Queue.transfer m m' end)
          else raises "a queue and itself" L.Borrowed (fun () -> Fifo.transfer q q'));
      check "peek" (Option.map C.number (Fifo.peek q) = Queue.peek_opt m);
      check "length" (Fifo.length q = Queue.length m);
      if n land 255 = 0 then
        check "contents" (numbers (Fifo.to_list q) = List.of_seq (Queue.to_seq m));
      if n land 4095 = 0 then Gc.compact ()
    done;
    whole "queues" (Fifo.check ());
    Array.iter (fun (q, _) -> Fifo.close q) all;
    raises "closed" L.Moved (fun () -> Fifo.push (C.make 1) (fst all.(0)));
    check "nothing is left" (Fifo.live () = 0)
end

module Numbers = struct
  include Ints

  let make n = n
  let number n = n
end

module Texts = struct
  include L.Rooted (Text) ()

  let make = string_of_int
  let number = int_of_string
end

module Floats = struct
  include L.Rooted (struct type t = float end) ()

  let make n = float n
  let number = int_of_float
end

(* Some of them are too long for a cell. *)
module Copied = struct
  include L.Text

  let make n = String.make (n * 7 mod 530) 'x' ^ string_of_int n

  let number s =
    match String.rindex_opt s 'x' with
    | Some i -> int_of_string (String.sub s (i + 1) (String.length s - i - 1))
    | None -> int_of_string s
end

module Of_numbers = Model (Numbers) ()
module Of_texts = Model (Texts) ()
module Of_floats = Model (Floats) ()
module Of_copied = Model (Copied) ()

let lists n =
  Of_numbers.lists n;
  Of_texts.lists n;
  Of_floats.lists (n / 4);
  Of_copied.lists (n / 4);
  check "no text is left" (L.Text.live () = 0)

let queues n =
  Of_numbers.queues n;
  Of_texts.queues n

(* The collector passes by what is in a queue: a full collection takes as long as with an empty one. *)
let large_time n =
  let module Q = Of_numbers.Q in
  let full () = let t = Unix.gettimeofday () in Gc.full_major (); Unix.gettimeofday () -. t in
  let q = ref (Q.create ()) in
  for i = 1 to n do q := Q.cons i !q done;
  ignore (full ());
  let took = full () in
  if variant then check (Printf.sprintf "a full collection took %g s" took) (took < 0.2);
  Q.close !q

(* Many, in place: without an allocation for each element. *)
let large n =
  let module Q = Of_numbers.Q in
  let q = ref (Q.create ()) in
  for i = 1 to n do q := Q.cons i !q done;
  let before = Gc.minor_words () in
  q := Q.rev !q;
  q := Q.map (fun n -> n * 3) !q;
  check "no allocation" (Gc.minor_words () -. before < 1000.);
  q := Q.sort (fun a b -> compare (b : int) a) !q;
  check "sorted" (Q.borrow !q (fun l -> is_sorted (fun a b -> compare b a) l && List.hd l = 3 * n));
  (* Pages that are partly free are used again. *)
  let memory = Q.memory () in
  q := Q.filter (fun n -> n land 1 = 0) !q;
  whole "large" (Q.check ());
  for i = Q.length !q + 1 to n do q := Q.cons i !q done;
  check "no more memory" (Q.memory () = memory);
  Q.close !q;
  check "nothing is left" (Q.live () = 0);
  whole "large" (Q.check ())
