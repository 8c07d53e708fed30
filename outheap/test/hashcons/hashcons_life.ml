(* SPDX-License-Identifier: MIT *)
(* What keeps values alive, and when they end. *)
open Hashcons_checks
open Hashcons_terms

type holder = { mutable held : term list }

let table = Table.create 100
let add n = Table.hashcons table n
let here () = count Table.iter table

(* A value with two that only it leads to. *)
let[@inline never] give () = add (Pair (add (Text "held"), add (Many [ add (Real 4.5) ])))

let shape_given = SPair (SText "held", SMany [ SReal 4.5 ])

(* For each way to hold a value: it and what it leads to live while it is held, and end after. *)
let holds what hold look release =
  with_ (fun () -> hold (give ()));
  majors 3;
  check (Printf.sprintf "%s: %d values" what (here ())) (here () = 4);
  with_ (fun () -> check (what ^ ": content") (same (look ()) shape_given));
  majors 1;
  with_ (fun () -> check (what ^ ": the same") (give () == look ()));
  release ();
  majors 3;
  check (Printf.sprintf "%s: %d values after" what (here ())) (here () = 0)

let other = Table.create 1

let life () =
  let h = { held = [] } in
  let drop () = h.held <- [] in
  let first () = List.hd h.held in
  holds "field" (fun v -> h.held <- [ v ]) first drop;
  holds "part of a value" (fun v -> match v.node with Pair (_, b) -> h.held <- [ b; v ] | _ -> ())
    (fun () -> List.nth h.held 1) drop;
  let f = ref give in
  holds "closure" (fun v -> f := fun () -> opaque v) (fun () -> !f ()) (fun () -> f := give);
  holds "root of C code" hold held (fun () -> hold 0);
  let node = ref Nil in
  if off_heap then holds "node" (fun v -> node := v.node) (fun () -> add !node) (fun () -> node := Nil);
  let other_value = ref [] in
  holds "value of another table"
    (fun v -> other_value := [ Table.hashcons other (Many [ v ]) ])
    (fun () -> match (List.hd !other_value).node with Many [ v ] -> v | _ -> assert false)
    (fun () -> other_value := []);
  majors 3;
  check "the other table is empty" (count Table.iter other = 0);
  let module E = Obj.Ephemeron in
  let e = E.create 1 and key = ref (opaque 5) in
  holds "ephemeron's data"
    (fun v -> E.set_key e 0 (Obj.repr key); E.set_data e (Obj.repr v))
    (fun () -> Obj.obj (Option.get (E.get_data e)))
    (fun () -> E.unset_data e);
  ignore (opaque key);
  if off_heap then (
    let w = Weak.create 3 in
    holds "weak pointer"
      (fun v -> Weak.set w 1 (Some v))
      (fun () -> Option.get (Weak.get w 1))
      (fun () -> Weak.set w 1 None);
    let t = opaque (give ()) in
    (match Gc.finalise ignore t with () -> check "finaliser" false | exception Invalid_argument _ -> ());
    check "a cell" (Hashcons.is_cell (Obj.repr t) && Hashcons.is_cell (Obj.repr t.node))
  );
  majors 3;
  check "none is left" (here () = 0)

(* A value whose last holder goes while the marker is at work, and that is looked up again. Blocks that are made then
   are not looked at by the marker. *)
let again () =
  let kept = Array.make 500 None in
  for round = 1 to 300 do
    let i = round mod 500 in
    with_ (fun () -> kept.(i) <- Some (build add (SPair (SLeaf round, SMany [ SText (string_of_int round) ]))));
    kept.(i) <- None;
    for _ = 1 to below 20 do
      major_slice (below 3000);
      if off_heap then slice (below 30)
    done;
    let v = build add (SPair (SLeaf round, SMany [ SText (string_of_int round) ])) in
    kept.(i) <- Some v;
    (match kept.((i + 250) mod 500) with
    | Some v -> (
        match v.node with
        | Pair ({ node = Leaf n; _ }, { node = Many [ { node = Text s; _ } ]; _ }) -> check "kept" (string_of_int n = s)
        | _ -> check "kept" false)
    | None -> ());
    if round mod 50 = 0 then validate "again"
  done;
  Array.fill kept 0 500 None;
  majors 3;
  check "all ends" (here () = 0)

(* Lookups of what is unreachable, with a collection of cells in each of its phases. *)
let phases () =
  if off_heap && is_tiny () then (
    let seen = Array.make 5 0 in
    let shape_of n = SPair (SLeaf n, SMany [ SPair (SLeaf (-n), SNil); SText (string_of_int n) ]) in
    let kept = ref [] in
    let settle () = while phase () <> 0 do slice (1 + below 20) done in
    for round = 1 to 400 do
      with_ (fun () -> for n = 1 to 40 do ignore (opaque (build add (shape_of n))) done);
      kept := [];
      (* after the first cycle they are there, since they were born in it; after the second one they are dead *)
      Gc.major ();
      slice max_int;
      Gc.major ();
      slice (below (1 + (round * 3)));
      seen.(phase ()) <- seen.(phase ()) + 1;
      (* from 5.5 on marking begins late in a cycle: here it has begun in some rounds *)
      if round land 1 = 0 then for _ = 1 to below 20 do major_slice (below 10_000) done;
      kept := List.init 10 (fun n -> build add (shape_of (n + 1)));
      settle ();
      validate "after a collection";
      let kept_well () = List.iteri (fun n t -> check "still there" (same t (shape_of (n + 1)))) !kept in
      with_ (fun () -> for n = 41 to 90 do ignore (opaque (build add (shape_of n))) done);
      kept_well ();
      (* blocks that are promoted now are not looked at by the marker *)
      Gc.minor ();
      Gc.major ();
      settle ();
      validate "after the next one";
      with_ (fun () -> for n = 91 to 140 do ignore (opaque (build add (shape_of n))) done);
      kept_well ()
    done;
    check
      (Printf.sprintf "phases %d %d %d" seen.(1) seen.(3) seen.(4))
      (seen.(1) > 0 && seen.(3) > 0);
    kept := [];
    majors 3;
    check "all ends" (here () = 0))

(* Sets and maps of terms, beside lists of their tags. *)
let sets () =
  let module S = Hashcons.Hset in
  let module M = Hashcons.Hmap in
  let leaf i = add (Leaf i) in
  for _ = 1 to 200 do
    let some () = List.sort_uniq compare (List.init (below 12) (fun _ -> below 20)) in
    let la = some () and lb = some () in
    let set l = S.of_list (List.map leaf l) in
    let a = set la and b = set lb in
    let number t = match t.Hashcons.node with Leaf i -> i | _ -> -1 in
    let numbers s = List.sort compare (List.map number (S.elements s)) in
    let both = List.filter (fun i -> List.mem i lb) la in
    check "union" (numbers (S.union a b) = List.sort_uniq compare (la @ lb));
    check "inter" (numbers (S.inter a b) = both);
    check "diff" (numbers (S.diff a b) = List.filter (fun i -> not (List.mem i lb)) la);
    check "subset" (S.subset a b = (both = la) && S.disjoint a b = (both = []) && S.intersect a b = (both <> []));
    check "equal" (S.equal a (set (List.rev la)) && S.equal a b = (la = lb) && (S.compare a b = 0) = (la = lb));
    check "cardinal" (S.cardinal a = List.length la && S.is_empty a = (la = []));
    check "singleton" (S.is_singleton a = match la with [ i ] -> Some (leaf i) | _ -> None);
    let even i = i mod 2 = 0 in
    let is_even t = even (number t) in
    let yes, no = S.partition is_even a in
    check "partition" (numbers yes = List.filter even la && numbers no = List.filter (fun i -> not (even i)) la);
    check "filter" (S.equal (S.filter is_even a) yes && S.for_all is_even yes && not (S.exists is_even no));
    (match S.find_first is_even a with
    | t -> check "first" (S.for_all (fun u -> u.tag >= t.tag) yes && S.find_last is_even a == S.max_elt yes)
    | exception Not_found -> check "none" (S.is_empty yes && S.find_any_opt is_even a = None));
    let inorder = S.elements a in
    let first = function [] -> None | t :: _ -> Some t in
    let last l = first (List.rev l) in
    let found find = match find a with t -> Some t | exception Not_found -> None in
    List.iter
      (fun (what, got, optional, expected) -> check what (found got = expected && optional a = expected))
      [
        ("min", S.min_elt, S.min_elt_opt, first inorder); ("max", S.max_elt, S.max_elt_opt, last inorder);
        ("first even", S.find_first is_even, S.find_first_opt is_even, first (S.elements yes));
        ("last even", S.find_last is_even, S.find_last_opt is_even, last (S.elements yes));
      ];
    let one_of s = function None -> S.is_empty s | Some t -> S.mem t s in
    List.iter
      (fun (what, got, s) -> check what (one_of s got))
      [
        ("choose", found S.choose, a); ("choose_opt", S.choose_opt a, a);
        ("any", found (S.find_any is_even), yes); ("any_opt", S.find_any_opt is_even a, yes);
      ];
    List.iter
      (fun i ->
        let mine = if List.mem i la then Some (leaf i) else None in
        check "find" (S.find_opt (leaf i) a = mine && found (S.find (leaf i)) = mine))
      lb;
    check "seq" (List.of_seq (S.to_seq a) = inorder && S.equal (S.of_seq (List.to_seq (List.map leaf la))) a);
    check "add_seq" (S.equal (S.add_seq (S.to_seq a) b) (S.union a b));
    let halved t = if is_even t then Some (leaf (number t / 2)) else None in
    check "filter_map"
      (numbers (S.filter_map halved a) = List.sort_uniq compare (List.map (fun i -> i / 2) (List.filter even la)));
    let with_one = if la = [] then a else S.add (leaf 1) a in
    check "bind" (S.equal (S.bind (fun t -> S.add (leaf 1) (S.singleton t)) a) with_one);
    check "map" (numbers (S.map (fun _ -> leaf 3) a) = if la = [] then [] else [ 3 ]);
    List.iter
      (fun i ->
        let below, there, above = S.split (leaf i) a in
        check "split" (there = List.mem i la && S.equal (S.union below above) (S.remove (leaf i) a)))
      lb;
    let m = List.fold_left (fun m i -> M.add (leaf i) i m) M.empty la in
    check "map" (M.fold (fun k v n -> if k == leaf v then n + 1 else -99) m 0 = List.length la);
    let removed i = not (M.mem (leaf i) (M.remove (leaf i) m)) in
    List.iter (fun i -> check "mem" (M.mem (leaf i) m = List.mem i la && removed i)) lb;
    M.iter (fun k v -> check "mapi" (M.find k (M.mapi (fun k v -> (k, v)) (M.map succ m)) = (k, v + 1))) m
  done;
  majors 3;
  check "all ends" (here () = 0)

(* Tables end, or are cleared, before their values. *)
let tables () =
  let kept = ref [] in
  for i = 1 to 2000 do
    let t = Table.create (below 20) in
    let v = build (Table.hashcons t) (SPair (SLeaf i, SText (string_of_int i))) in
    if i mod 100 = 0 then kept := (i, v) :: !kept
  done;
  for _ = 1 to 20_000 do ignore (opaque (Table.create 1)) done;
  majors 3;
  let right () = List.iter (fun (i, v) -> check "kept" (same v (SPair (SLeaf i, SText (string_of_int i))))) !kept in
  right ();
  let t = Table.create 1 in
  let a = build (Table.hashcons t) (SPair (SNil, SLeaf 1)) in
  Table.clear t;
  check "cleared" (count Table.iter t = 0);
  let b = build (Table.hashcons t) (SPair (SNil, SLeaf 1)) in
  check "another value" (a != b && a.tag <> b.tag && same a (shape b));
  majors 3;
  check "both" (same a (SPair (SNil, SLeaf 1)) && same b (SPair (SNil, SLeaf 1)));
  check "three" (count Table.iter t = 3);
  let n = ref 0 in
  Table.iter (fun _ -> incr n; Table.clear t; ignore (Table.hashcons t (Leaf !n)); Gc.full_major ()) t;
  check "iter beside clear" (!n = 3);
  validate "tables";
  right ();
  kept := [];
  ignore (opaque (a, b, t))

let ends () =
  tables ();
  majors 4;
  if off_heap then check "no cell is left" ((Hashcons.memory ()).cells = 0)

let forks () =
  let v = opaque (give ()) in
  major_slice 1000;
  let work what =
    for i = 1 to 3000 do ignore (opaque (build add (SPair (SLeaf i, SReal (float i))))) done;
    majors 3;
    check what (here () = 4 && same v shape_given && give () == v);
    validate what
  in
  let s = in_child (fun () -> work "child"; !failures) in
  check "child" (s = Unix.WEXITED 0);
  work "parent";
  ignore (opaque v)
