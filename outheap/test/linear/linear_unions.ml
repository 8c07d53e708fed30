(* SPDX-License-Identifier: MIT *)
(* Maps that are taken apart and put together, beside those of the standard library, with exceptions from the functions
   that they call. *)
open Linear_checks
module M = Map.Make (Stdlib.Int)

module Model (K : Linear_chains.CONTENTS) (V : Linear_chains.CONTENTS) () = struct
  include Linear_maps.Model (K) (V) ()

  let map size keys =
    let rec go n t m =
      if n = 0 then (t, m)
      else
        let k = below keys and v = below 10_000 in
        go (n - 1) (add k v t) (M.add k v m)
    in
    go size (T.create ()) M.empty

  let same what t m =
    sound t;
    check (what ^ ": length") (T.length t = M.cardinal m);
    check (what ^ ": contents") (seen t = M.bindings m)

  (* Stops at this call of a function; 0: at none. *)
  let stopping_at n f =
    Linear_maps.left := if n = 0 then -1 else n;
    let result = match f () with r -> Some r | exception Stop -> None in
    Linear_maps.left := -1;
    result

  let merged a b = if (a + b) mod 4 = 0 then None else Some ((a * 31) + b)

  let union_of stop (t, m) (t', m') =
    let f _ a b =
      ignore (Linear_maps.counted 0 0);
      Option.map V.make (merged (V.number a) (V.number b))
    in
    let all = M.union (fun _ a b -> merged a b) m m' in
    match stopping_at stop (fun () -> T.union f t t') with
    | Some t ->
        same "union" t all;
        raises "consumed" L.Moved (fun () -> T.length t');
        T.close t
    | None ->
        sound t;
        sound t';
        let a = seen t and b = seen t' in
        check "lengths" (List.length a = T.length t && List.length b = T.length t');
        let in_one k v = List.mem (k, v) a <> List.mem (k, v) b in
        let nowhere k = not (List.mem_assoc k a || List.mem_assoc k b) in
        let each k v v' =
          (match (v, v') with
          | Some v, Some v' ->
              let both = List.assoc_opt k a = Some v && List.assoc_opt k b = Some v' in
              check "in both" (both || match merged v v' with Some z -> in_one k z | None -> nowhere k)
          | Some v, None | None, Some v -> check "in one" (in_one k v)
          | None, None -> ());
          None
        in
        ignore (M.merge each m m');
        check "cells" (T.live () = List.length a + List.length b);
        T.close t;
        T.close t'

  let split_of stop k (t, m) =
    match stopping_at stop (fun () -> T.split (K.make k) t) with
    | Some (l, found, r) ->
        let l', found', r' = M.split k m in
        same "before" l l';
        same "after" r r';
        check "found" (Option.map V.number found = found');
        raises "consumed" L.Moved (fun () -> T.length t);
        T.close l;
        T.close r
    | None -> same "not split" t m; T.close t

  let sizes = [| 0; 1; 2; 3; 10; 60; 300 |]
  let size () = sizes.(below (Array.length sizes))
  let stop () = if below 2 = 0 then 0 else 1 + below 60

  let run n =
    for _ = 1 to n do
      let keys = 1 + below 600 in
      union_of (stop ()) (map (size ()) keys) (map (size ()) keys);
      split_of (stop ()) (below keys) (map (size ()) keys);
      check "nothing is left" (T.live () = 0)
    done;
    let t, _ = map 10 100 in
    raises "with itself" L.Borrowed (fun () -> T.union (fun _ a _ -> Some a) t t);
    T.borrow t (fun _ -> raises "borrowed" L.Borrowed (fun () -> T.split (K.make 1) t));
    T.close t;
    whole "maps" (T.check ())
end

module Of_numbers = Model (Linear_chains.Numbers) (Linear_chains.Numbers) ()
module Of_texts = Model (Linear_chains.Texts) (Linear_chains.Copied) ()
module Of_copied = Model (Linear_chains.Copied) (Linear_chains.Texts) ()

(* In time for the smaller part. *)
let few_comparisons () =
  let calls = ref 0 in
  let module T =
    L.Map.Make
      (struct
        include Ints

        let compare a b = incr calls; Stdlib.Int.compare a b
      end)
      (Ints)
      ()
  in
  let filled from step n =
    let rec go i t = if i = n then t else go (i + 1) (T.add (from + (step * i)) i t) in
    go 0 (T.create ())
  in
  let large = filled 0 1 100_000 and small = filled 50_000 7 10 in
  let before = !calls in
  let t = T.union (fun _ _ v -> Some v) large small in
  check (Printf.sprintf "%d comparisons" (!calls - before)) (!calls - before < 10 * 40);
  check "length" (T.length t = 100_000 && T.find 50_007 t = Some 1);
  let before = !calls in
  let l, found, r = T.split 70_000 t in
  check (Printf.sprintf "%d comparisons" (!calls - before)) (!calls - before < 100);
  check "lengths" (T.length l = 70_000 && found = Some 70_000 && T.length r = 29_999);
  T.close l;
  T.close r

module Numbers = L.Set.Make (Linear_operations.By_int) ()

let sets () =
  let of_list l = Numbers.of_seq (List.to_seq l) and elements s = List.of_seq (Numbers.to_seq s) in
  let s = Numbers.union (of_list [ 1; 3; 5 ]) (of_list [ 2; 3; 4 ]) in
  check "union" (elements s = [ 1; 2; 3; 4; 5 ]);
  let l, there, r = Numbers.split 3 s in
  check "split" (elements l = [ 1; 2 ] && there && elements r = [ 4; 5 ]);
  Numbers.close l;
  Numbers.close r

(* Comparisons that are no order: each element is in one of the maps. *)
let disorders () =
  let module T =
    L.Map.Make
      (struct
        include Ints

        let compare a b = if below 10 = 0 then below 3 - 1 else Stdlib.Int.compare a b
      end)
      (L.Text)
      ()
  in
  for _ = 1 to 300 do
    let filled () =
      let t = ref (T.create ()) in
      for k = 1 to below 60 do t := T.add k (string_of_int k) !t done;
      !t
    in
    let sound t = T.borrow t (fun v -> ignore (Linear_maps.height ~ordered:false Fun.id 0 0 v)) in
    let t = filled () and t' = filled () in
    let both = T.length t + T.length t' and merged = ref 0 in
    let t = T.union (fun _ _ v -> incr merged; Some v) t t' in
    sound t;
    check "each element" (T.length t = both - !merged && T.live () = T.length t);
    let l, found, r = T.split (below 60) t in
    sound l;
    sound r;
    check "each element" (T.length l + T.length r + (if found = None then 0 else 1) >= both - !merged);
    check "cells" (T.live () = T.length l + T.length r);
    T.close l;
    T.close r
  done;
  check "no text is left" (L.Text.live () = 0)

let unions n =
  Of_numbers.run n;
  Of_texts.run n;
  Of_copied.run (n / 2);
  few_comparisons ();
  sets ();
  disorders ()
