(* SPDX-License-Identifier: MIT *)
(* Programs that hash-cons their data. The builder makes a module of this text for each implementation, with its name
   in the place of Outheap_hashcons. *)
module Hashcons = Outheap_hashcons

(* --- quicksort in the λ-calculus: nearly every term that is made exists already ----------------------------------- *)

module Lambda = struct
  type term = node Hashcons.hash_consed
  and node = Var of int | Abs of term | App of term * term

  module T = Hashcons.Make (struct
    type t = node

    let equal a b =
      match (a, b) with
      | Var i, Var j -> i = j
      | Abs a, Abs b -> a == b
      | App (a, b), App (c, d) -> a == c && b == d
      | _ -> false

    let hash = function
      | Var i -> i
      | Abs t -> (19 * t.Hashcons.tag) + 1
      | App (a, b) -> (19 * ((19 * a.Hashcons.tag) + b.tag)) + 2
  end)

  let table = T.create 1000
  let var i = T.hashcons table (Var i)
  let abs t = T.hashcons table (Abs t)
  let app a b = T.hashcons table (App (a, b))
  let app2 f a b = app (app f a) b
  let app3 f a b c = app (app2 f a b) c

  (* de Bruijn's indices *)
  let rec lift n k (t : term) =
    match t.node with
    | Var i -> if i < k then t else var (i + n)
    | Abs t -> abs (lift n (k + 1) t)
    | App (a, b) -> app (lift n k a) (lift n k b)

  let rec substitute v k (t : term) =
    match t.node with
    | Var i -> if i = k then lift k 0 v else if i < k then t else var (i - 1)
    | Abs t -> abs (substitute v (k + 1) t)
    | App (a, b) -> app (substitute v k a) (substitute v k b)

  let rec head (t : term) =
    match t.node with
    | App (f, a) -> (
        let f = head f in
        match f.Hashcons.node with Abs b -> head (substitute a 0 b) | _ -> app f a)
    | _ -> t

  let rec normal t =
    let t = head t in
    match t.Hashcons.node with
    | Var _ -> t
    | Abs b -> abs (normal b)
    | App (a, b) -> app (normal a) (normal b)

  (* Data are functions that choose; what is recursive gets itself. *)
  let yes = abs (abs (var 1))
  let no = abs (abs (var 0))
  let zero = abs (abs (var 1))
  let succ n = abs (abs (app (var 0) (lift 2 0 n)))
  let nil = abs (abs (var 1))
  let cons x l = abs (abs (app2 (var 0) (lift 2 0 x) (lift 2 0 l)))

  let fix f =
    let half = abs (app (var 1) (app (var 0) (var 0))) in
    app (abs (app half half)) f

  (* less or equal: fix f m n. m yes (m'. n no (n'. f m' n')) *)
  let less =
    fix (abs (abs (abs (app2 (var 1) yes (abs (app2 (var 1) no (abs (app2 (var 4) (var 1) (var 0)))))))))

  (* append: fix f a b. a b (x a'. cons x (f a' b)) *)
  let append =
    fix (abs (abs (abs (app2 (var 1) (var 0) (abs (abs (cons (var 1) (app2 (var 4) (var 0) (var 2)))))))))

  (* filter: fix f p l. l nil (x l'. p x (cons x (f p l')) (f p l')) *)
  let filter =
    let rest = app2 (var 4) (var 3) (var 0) in
    fix (abs (abs (abs (app2 (var 0) nil (abs (abs (app2 (app (var 3) (var 1)) (cons (var 1) rest) rest)))))))

  (* sort: fix f l. l nil (x l'. append (f (filter (y. y <= x) l')) (cons x (f (filter (y. not (y <= x)) l')))) *)
  let sort =
    let below = abs (app2 less (var 0) (var 2)) and above = abs (app2 (app2 less (var 0) (var 2)) no yes) in
    let part p = app (var 3) (app2 filter p (var 0)) in
    fix (abs (abs (app2 (var 0) nil (abs (abs (app2 append (part below) (cons (var 1) (part above))))))))

  let rec number n = if n = 0 then zero else succ (number (n - 1))
  let list l = List.fold_right (fun n l -> cons (number n) l) l nil

  let quicksort n =
    let numbers = List.init n (fun i -> i * 7 mod n) in
    let sorted = normal (app sort (list numbers)) in
    if sorted != normal (list (List.sort compare numbers)) then Bench.fail "not sorted"
end

(* --- binary decision diagrams of the pigeon-hole principle -------------------------------------------------------- *)

module Bdd = struct
  type bdd = node Hashcons.hash_consed
  and node = Zero | One | Node of int * bdd * bdd

  module T = Hashcons.Make (struct
    type t = node

    let equal a b =
      match (a, b) with
      | Node (v, a, b), Node (w, c, d) -> v = w && a == c && b == d
      | Zero, Zero | One, One -> true
      | _ -> false

    let hash = function
      | Zero -> 0
      | One -> 1
      | Node (v, a, b) -> (19 * ((19 * v) + a.Hashcons.tag)) + b.Hashcons.tag + 2
  end)

  let table = T.create 1000
  let zero = T.hashcons table Zero
  let one = T.hashcons table One
  let make v low high = if low == high then low else T.hashcons table (Node (v, low, high))
  let variable v = make v zero one

  module Pairs = Hashtbl.Make (struct
    type t = int * int

    let equal ((a, b) : t) (c, d) = a = c && b = d
    let hash (a, b) = ((a * 65599) + b) land max_int
  end)

  let top (b : bdd) = match b.node with Node (v, _, _) -> v | _ -> max_int
  let parts v (b : bdd) = match b.node with Node (w, l, h) when v = w -> (l, h) | _ -> (b, b)

  let combine at_end a b =
    let done_ = Pairs.create 1000 in
    let rec go (a : bdd) (b : bdd) =
      match at_end a b with
      | Some r -> r
      | None -> (
          let key = (a.tag, b.tag) in
          match Pairs.find_opt done_ key with
          | Some r -> r
          | None ->
              let v = min (top a) (top b) in
              let al, ah = parts v a and bl, bh = parts v b in
              let r = make v (go al bl) (go ah bh) in
              Pairs.add done_ key r;
              r)
    in
    go a b

  let both =
    combine (fun a b ->
        if a == zero || b == zero then Some zero
        else if a == one then Some b
        else if b == one || a == b then Some a
        else None)

  let either =
    combine (fun a b ->
        if a == one || b == one then Some one
        else if a == zero then Some b
        else if b == zero || a == b then Some a
        else None)

  let complement a = combine (fun a _ -> if a == zero then Some one else if a == one then Some zero else None) a a
  let all l = List.fold_left both one l
  let any l = List.fold_left either zero l

  (* n + 1 pigeons do not fit into n holes. *)
  let pigeons n =
    let in_hole p h = variable ((p * n) + h) in
    let range k = List.init k Fun.id in
    let somewhere = all (List.map (fun p -> any (List.map (in_hole p) (range n))) (range (n + 1))) in
    let conflict h p q = both (in_hole p h) (in_hole q h) in
    let conflicts =
      List.concat_map
        (fun h -> List.concat_map (fun p -> List.map (fun q -> conflict h p q) (range p)) (range (n + 1)))
        (range n)
    in
    let alone = List.fold_left (fun b c -> both b (complement c)) one conflicts in
    if both somewhere alone != zero then Bench.fail "they fit"
end

(* --- terms that come and go --------------------------------------------------------------------------------------- *)

module Turnover = struct
  type term = node Hashcons.hash_consed
  and node = Leaf of int | Pair of term * term

  module T = Hashcons.Make (struct
    type t = node

    let equal a b =
      match (a, b) with Leaf i, Leaf j -> i = j | Pair (a, b), Pair (c, d) -> a == c && b == d | _ -> false

    let hash = function Leaf i -> i | Pair (a, b) -> (19 * ((19 * a.Hashcons.tag) + b.Hashcons.tag)) + 1
  end)

  let table = T.create 1000
  let leaf i = T.hashcons table (Leaf i)

  (* `live` terms, with a pair and a leaf each; each step replaces one, and looks another one up again. *)
  let run live =
    let keys = Array.init live Fun.id in
    let term k = T.hashcons table (Pair (leaf k, leaf (k / 2))) in
    let terms = Array.map term keys in
    for i = 1 to 4 * live do
      let at = Rng.below live and again = Rng.below live in
      keys.(at) <- live + i;
      terms.(at) <- term keys.(at);
      if term keys.(again) != terms.(again) then Bench.fail "another term"
    done
end

(* --- equal hashes ------------------------------------------------------------------------------------------------ *)

module Crowd = struct
  type node = { group : int; number : int }

  module T = Hashcons.Make (struct
    type t = node

    let equal a b = a.number = b.number && a.group = b.group
    let hash n = n.group * 0x9e3779b1
  end)

  (* 40,000 values of which each `size` have the same hash are made, and looked up twice. *)
  let groups size =
    for _ = 1 to max 1 (40 / (1 + (size / 50))) do
      let table = T.create 1 in
      let value i = T.hashcons table { group = i / size; number = i mod size } in
      let all = Array.init 40_000 value in
      for _ = 1 to 2 do
        Array.iteri (fun i v -> if value i != v then Bench.fail "another value") all
      done
    done

  (* Many tables of `size` values with one hash, in each of which they are looked up once. *)
  let tables size =
    for group = 1 to max 1 (40_000_000 / size / (20 + size)) do
      let table = T.create 1 in
      let value number = T.hashcons table { group; number } in
      let all = Array.init size value in
      Array.iteri (fun i v -> if value i != v then Bench.fail "another value") all
    done
end

(* --- the data of Coq's library ------------------------------------------------------------------------------------ *)

module Theories = struct
  type term = node Hashcons.hash_consed
  and node = Number of int | Text of string | Block of int * term array

  module T = Hashcons.Make (struct
    type t = node

    let rec same a b i = i < 0 || (a.(i) == b.(i) && same a b (i - 1))

    let equal a b =
      match (a, b) with
      | Number i, Number j -> i = j
      | Text s, Text t -> String.equal s t
      | Block (s, a), Block (t, b) -> s = t && Array.length a = Array.length b && same a b (Array.length a - 1)
      | _ -> false

    let hash = function
      | Number i -> 3 * i
      | Text s -> (3 * Hashtbl.hash s) + 1
      | Block (tag, a) -> (3 * Array.fold_left (fun h t -> (19 * h) + t.Hashcons.tag) tag a) + 2
  end)

  let table = T.create 1000

  (* As Coq shares its terms itself: from the root, and again wherever a block is met again. *)
  let rec share v =
    T.hashcons table
      (if Obj.is_int v then Number (Obj.obj v)
       else if Obj.tag v < Obj.no_scan_tag then
         Block (Obj.tag v, Array.init (Obj.size v) (fun i -> share (Obj.field v i)))
       else if Obj.tag v = Obj.string_tag then Text (Obj.obj v)
       else Text (Marshal.to_string v []))

  (* The libraries of a folder; some are shared a second time. *)
  let run folder =
    let value path = List.assoc "library" (Vo_files.read ~wanted:(( = ) "library") path) in
    let files = Vo_files.below (Filename.concat (Vo_files.folder ()) folder) in
    let terms = List.map (fun path -> (path, share (value path))) files in
    let again n (path, term) = if n mod 10 = 0 && share (value path) != term then Bench.fail "another term" in
    List.iteri again terms
end
