(* SPDX-License-Identifier: MIT *)
(* Operations beside those of the library of OCaml, and contents that are coded as texts. *)
open Linear_checks
module Int = Stdlib.Int

module By_int = struct
  include Ints

  let compare = Int.compare
end

module Words = Lists.Make (L.Text) ()
module Line = L.Queue.Make (Ints) ()
module Book = L.Map.Make (By_int) (L.Text) ()
module Numbers = L.Set.Make (By_int) ()
module Index = L.Table.Make (Ints_hashed) (L.Text) ()
module Std = Map.Make (Int)

let word n = "word " ^ string_of_int n
let numbers n = List.init n Fun.id

let lists () =
  List.iter
    (fun n ->
      let all = List.map word (numbers n) in
      let l = Words.of_seq (List.to_seq all) in
      let seen = ref [] in
      Words.iteri (fun i w -> seen := (i, w) :: !seen) l;
      check "iteri" (List.rev !seen = List.mapi (fun i w -> (i, w)) all);
      check "to_seq" (List.of_seq (Words.to_seq l) = all);
      let later = Words.to_seq l in
      check "find" (Words.find (fun w -> w >= "word 3") l = List.find_opt (fun w -> w >= "word 3") all);
      check "exists" (Words.exists (( = ) "word 2") l = List.mem "word 2" all);
      check "for_all" (Words.for_all (fun w -> w < "word 2") l = List.for_all (fun w -> w < "word 2") all);
      if n > 0 then raises "in a function" Exit (fun () -> Words.find (fun _ -> raise Exit) l);
      Words.close l;
      check "later" (List.of_seq later = all))
    [ 0; 1; 2; 3; 50 ]

let queues () =
  let q = Line.of_seq (List.to_seq (numbers 10)) in
  check "find" (Line.find (fun n -> n > 4) q = Some 5 && Line.exists (( = ) 9) q && Line.for_all (fun n -> n < 10) q);
  raises "in use" L.Borrowed (fun () -> Line.iteri (fun _ _ -> Line.clear q) q);
  Line.clear q;
  check "empty" (Line.length q = 0 && Line.pop q = None && Line.live () = 0);
  Line.push 7 q;
  check "to_seq" (List.of_seq (Line.to_seq q) = [ 7 ] && Line.pop q = Some 7);
  Line.close q;
  raises "closed" L.Moved (fun () -> Line.clear q)

let maps () =
  let n = 300 in
  let of_std s = Book.of_seq (Std.to_seq s) in
  let same what m s = check what (List.of_seq (Book.to_seq m) = Std.bindings s && Book.length m = Std.cardinal s) in
  let s = List.fold_left (fun s i -> Std.add (i * 7919 mod 1009) (word i) s) Std.empty (numbers n) in
  let m = of_std s in
  same "of_seq" m s;
  for _ = 1 to 200 do
    let bound () = if below 4 = 0 then None else Some (below 1100 - 50) in
    let from = bound () and upto = bound () in
    let inside k = Option.fold ~none:true ~some:(( >= ) k) from && Option.fold ~none:true ~some:(( <= ) k) upto in
    let found = List.rev (Book.fold_range ?from ?upto (fun k v l -> (k, v) :: l) m []) in
    check "a range" (found = List.filter (fun (k, _) -> inside k) (Std.bindings s))
  done;
  let m, s =
    List.fold_left
      (fun (m, s) _ ->
        let k = below 1009 and change v = if below 2 = 0 then None else Some (Option.value v ~default:"" ^ "+") in
        let state = Random.State.copy random in
        let s = Std.update k change s in
        let ours = Random.State.int state 2 in
        (Book.update k (fun v -> if ours = 0 then None else Some (Option.value v ~default:"" ^ "+")) m, s))
      (m, s) (numbers 500)
  in
  same "update" m s;
  raises "update" Exit (fun () -> Book.update 1 (fun _ -> raise Exit) m);
  let rec pop m s =
    whole "map" (Book.check ());
    match Book.pop_min m with
    | None -> check "all" (Std.is_empty s); Book.close m
    | Some (least, rest) ->
        check "the least" (least = Std.min_binding s);
        raises "popped" L.Moved (fun () -> Book.pop_min m);
        let s = Std.remove (fst least) s in
        same "the rest" rest s;
        pop rest s
  in
  pop m s;
  check "nothing is left" (Book.live () = 0)

let sets () =
  let s = Numbers.of_seq (List.to_seq [ 5; 3; 9; 3; 1 ]) in
  check "elements" (List.of_seq (Numbers.to_seq s) = [ 1; 3; 5; 9 ] && Numbers.length s = 4);
  check "mem" (Numbers.mem 9 s && not (Numbers.mem 2 s));
  check "ends" (Numbers.min_elt s = Some 1 && Numbers.max_elt s = Some 9);
  check "a range" (Numbers.fold_range ~from:2 ~upto:5 List.cons s [] = [ 5; 3 ]);
  let s = Numbers.remove 3 (Numbers.add 7 s) in
  match Numbers.pop_min s with
  | Some (1, s) ->
      check "the rest" (Numbers.fold (fun n l -> n :: l) s [] = [ 9; 7; 5 ]);
      Numbers.close s;
      check "nothing is left" (Numbers.live () = 0 && Numbers.check () = "")
  | _ -> check "pop_min" false

let tables () =
  let t = Index.of_seq (List.to_seq [ (1, "a"); (2, "b"); (1, "c") ]) in
  Index.update 1 (Option.map (fun s -> s ^ s)) t;
  Index.update 2 (fun _ -> None) t;
  Index.update 3 (fun v -> check "nothing" (v = None); Index.replace 4 "inside" t; Some "new") t;
  raises "update" Exit (fun () -> Index.update 1 (fun _ -> raise Exit) t);
  check "updated" (List.sort compare (List.of_seq (Index.to_seq t)) = [ (1, "cc"); (3, "new"); (4, "inside") ]);
  for i = 1 to 5_000 do Index.replace i (word i) t done;
  raises "in use" L.Borrowed (fun () -> Index.iter (fun _ _ -> Index.reset t) t);
  Index.reset t;
  check "as a new one" (Index.length t = 0 && Linear_compacted.buckets t = 8 && Index.live () = 0);
  for i = 1 to 5_000 do Index.replace i (word i) t done;
  check "it goes on" (Index.length t = 5_000 && Index.find 77 t = Some (word 77));
  whole "table" (Index.check_table t);
  Index.close t;
  raises "closed" L.Moved (fun () -> Index.reset t);
  let t = Index.create ~most:10 () and parts = Index.Sharded.create ~most:10 ~shards:4 () in
  for i = 1 to 25 do
    Index.replace i "" t;
    Index.replace i "" t;
    Index.Sharded.replace i "" parts
  done;
  Index.remove 25 t;
  check "evictions" (Index.evictions t = 15);
  check "of parts" (Index.Sharded.evictions parts = 25 - Index.Sharded.length parts);
  Index.close t;
  Index.Sharded.close parts;
  raises "closed" L.Moved (fun () -> Index.evictions t);
  raises "closed" L.Moved (fun () -> Index.Sharded.evictions parts)

module Pair = L.Coded (struct
  type t = int * string

  let encode (n, s) = string_of_int n ^ ":" ^ s

  let decode s =
    let colon = String.index s ':' in
    (int_of_string (String.sub s 0 colon), String.sub s (colon + 1) (String.length s - colon - 1))
end)

module Pairs =
  L.Table.Make
    (struct
      include Pair

      let equal = ( = )
      let hash = Hashtbl.hash
    end)
    (L.Float)
    ()

module By_float =
  L.Map.Make
    (struct
      include L.Float

      let compare = Float.compare
    end)
    (L.Int64)
    ()

let coded () =
  let t = Pairs.create () in
  let key i = (i, String.make (i mod 600) 'k') in
  for i = 0 to 700 do Pairs.replace (key i) (float i /. 3.) t done;
  for i = 0 to 700 do check "a pair" (Pairs.find (key i) t = Some (float i /. 3.)) done;
  check "another" (Pairs.find (1, "") t = None);
  Pairs.close t;
  let all = [ 0.; -0.; 1.5; infinity; neg_infinity; nan; min_float; epsilon_float; Int64.float_of_bits 1L ] in
  let module F = Lists.Make (L.Float) () in
  let l = F.of_list all in
  check "all bits" (List.map Int64.bits_of_float (F.to_list l) = List.map Int64.bits_of_float all);
  check "borrowed" (F.borrow l (List.map L.Float.get) |> List.map Int64.bits_of_float
                    = List.map Int64.bits_of_float all);
  let l = F.sort Float.compare l in
  check "sorted" (compare (F.to_list l) (List.sort Float.compare all) = 0);
  F.close l;
  let m = List.fold_left (fun m f -> By_float.add f (Int64.bits_of_float f) m) (By_float.create ()) all in
  By_float.iter (fun f n -> check "an int64" (compare (Int64.float_of_bits n) f = 0)) m;
  let stale = By_float.borrow m (function L.Red (_, k, _, _) | L.Black (_, k, _, _) -> k | L.Empty -> raise Exit) in
  L.poison true;
  By_float.close m;
  raises "a stale number" L.Moved (fun () -> L.Float.get stale);
  L.poison false;
  collect ();
  check "no text is left" (L.Text.live () = 0)

let operations () =
  lists ();
  queues ();
  maps ();
  sets ();
  tables ();
  coded ()
