(* SPDX-License-Identifier: MIT *)
(* Maps beside those of the standard library. *)
open Linear_checks
module M = Map.Make (Stdlib.Int)

module type CONTENTS = Linear_chains.CONTENTS

(* The number of black cells on each path; the equations hold. *)
let rec height ?(ordered = true) number below above t =
  match (t : _ L.tree) with
  | Empty -> 1
  | Red (l, k, _, r) | Black (l, k, _, r) ->
      let n = number k in
      let red = match t with Red _ -> true | _ -> false in
      if ordered then check "order" (below < n && n < above);
      (match (l, r) with
      | (Red _, _ | _, Red _) when red -> check "red below red" false
      | _ -> ());
      let a = height ~ordered number below n l and b = height ~ordered number n above r in
      check "black cells" (a = b);
      a + if red then 0 else 1

let left = ref (-1) (* calls of [compare] until one raises *)

let counted a b =
  decr left;
  if !left = 0 then raise Stop;
  compare (a : int) b

module Model (K : CONTENTS) (V : CONTENTS) () = struct
  module Key = struct
    include K

    let compare a b = counted (K.number a) (K.number b)
  end

  module T = L.Map.Make (Key) (V) ()

  let number s = K.number (K.get s)
  let seen t = List.rev (T.fold (fun k v l -> (K.number k, V.number v) :: l) t [])

  let sound t =
    T.borrow t (fun v ->
        ignore (height number min_int max_int v);
        match v with Red _ -> check "the root is black" false | _ -> ())

  let add k v t = T.add (K.make k) (V.make v) t
  let remove k t = T.remove (K.make k) t

  let maps steps keys =
    let t = ref (T.create ()) and m = ref M.empty in
    for n = 1 to steps do
      let k = below keys in
      (* In turns the map grows and shrinks. *)
      let grows = n / (keys + 1) land 1 = 0 in
      (match below 10 with
      | 0 -> check "find" (Option.map V.number (T.find (K.make k) !t) = M.find_opt k !m)
      | 1 -> check "mem" (T.mem (K.make k) !t = M.mem k !m)
      | 2 -> (
          left := 1 + below 12;
          (match below 3 with
          | 0 -> (
              match add k n !t with
              | t' -> t := t'; m := M.add k n !m
              | exception Stop -> ())
          | 1 -> (
              match remove k !t with
              | t' -> t := t'; m := M.remove k !m
              | exception Stop -> ())
          | _ -> ( match T.find (K.make k) !t with _ -> () | exception Stop -> ()));
          left := -1)
      | w when w < 7 = grows -> t := add k n !t; m := M.add k n !m
      | _ -> t := remove k !t; m := M.remove k !m);
      check "length" (T.length !t = M.cardinal !m);
      if n land 127 = 0 then begin
        sound !t;
        check "contents" (seen !t = M.bindings !m);
        let pair = Option.map (fun (k, v) -> (K.number k, V.number v)) in
        check "ends" (pair (T.min_binding !t) = M.min_binding_opt !m && pair (T.max_binding !t) = M.max_binding_opt !m)
      end;
      if n land 4095 = 0 then Gc.compact ()
    done;
    check "contents" (seen !t = M.bindings !m);
    check "cells" (T.live () = M.cardinal !m);
    whole "maps" (T.check ());
    T.close !t;
    raises "closed" L.Moved (fun () -> T.mem (K.make 1) !t);
    check "nothing is left" (T.live () = 0)
end

module Numbers = Linear_chains.Numbers
module Texts = Linear_chains.Texts
module Of_numbers = Model (Numbers) (Numbers) ()
module Of_texts = Model (Texts) (Numbers) ()
module To_texts = Model (Numbers) (Texts) ()
module Of_copied = Model (Linear_chains.Copied) (Linear_chains.Copied) ()

let maps n =
  List.iter
    (fun keys ->
      Of_numbers.maps n keys;
      Of_texts.maps n keys;
      To_texts.maps n keys;
      Of_copied.maps (n / 4) keys)
    [ 3; 30; 300; 3000 ]

(* All orders of few keys, in and out. *)
let orders () =
  let rec permutations = function
    | [] -> [ [] ]
    | l -> List.concat_map (fun x -> List.map (List.cons x) (permutations (List.filter (( <> ) x) l))) l
  in
  let module T = Of_numbers.T in
  let all = permutations [ 1; 2; 3; 4; 5 ] in
  List.iter
    (fun into ->
      List.iter
        (fun out ->
          let sound t = Of_numbers.sound t; t in
          let t = List.fold_left (fun t k -> sound (Of_numbers.add k k t)) (T.create ()) into in
          let t = List.fold_left (fun t k -> sound (Of_numbers.remove k t)) t out in
          check "empty" (T.length t = 0);
          T.close t)
        (List.filteri (fun i _ -> i mod 7 = 0) all))
    all

(* Comparison functions that are no order, in maps and for [sort]: elements may not be found, but none is lost, and what
   leads to them is sound. *)
let disorders () =
  let order = ref (fun _ _ -> 0) in
  let module M =
    L.Map.Make
      (struct
        include Texts

        let compare a b = !order (number a) (number b)
      end)
      (Linear_chains.Copied)
      ()
  in
  let module S = Lists.Make (Texts) () in
  let orders =
    [
      ("by chance", fun _ _ -> below 3 - 1); ("always less", fun _ _ -> -1); ("always greater", fun _ _ -> 1);
      ("extreme", fun a b -> if a < b then min_int else if a > b then max_int else 0);
      ("in a circle", fun a b -> if (a - b + 300) mod 3 = 0 then 0 else if (a - b + 300) mod 3 = 1 then 1 else -1);
      ("changing", fun a b -> if below 10 = 0 then compare b a else compare a b);
    ]
  in
  List.iter
    (fun (what, compare_numbers) ->
      order := compare_numbers;
      let t = ref (M.create ()) in
      for n = 1 to 3000 do
        let key = Texts.make (below 100) in
        t := if below 5 < 3 then M.add key (Linear_chains.Copied.make n) !t else M.remove key !t;
        if n mod 50 = 0 then begin
          M.borrow !t (fun view ->
              let rec cells : _ L.tree -> int = function
                | Empty -> 0
                | Red (l, _, _, r) | Black (l, _, _, r) -> 1 + cells l + cells r
              in
              check (what ^ ": each cell once") (cells view = M.length !t && M.live () = M.length !t);
              ignore (height ~ordered:false (fun _ -> 0) 0 0 view));
          let seen k v = check (what ^ ": of its type") (Texts.number k < 100 && Linear_chains.Copied.number v <= n) in
          M.iter seen !t
        end
      done;
      M.close !t;
      check (what ^ ": nothing is left") (M.live () = 0);
      List.iter
        (fun size ->
          let numbers = List.init size (fun _ -> below 100) in
          let l = S.of_list (List.map Texts.make numbers) in
          let l = S.sort (fun a b -> !order (Texts.number a) (Texts.number b)) l in
          check (what ^ ": all are in the list")
            (List.sort compare (List.map Texts.number (S.to_list l)) = List.sort compare numbers);
          S.close l)
        [ 0; 1; 2; 6; 7; 13; 100; 1000 ])
    orders;
  whole "maps" (M.check ());
  whole "lists" (S.check ())
