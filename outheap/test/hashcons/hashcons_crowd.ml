(* SPDX-License-Identifier: MIT *)
(* Many values with the same hash: a search compares each once, whatever happens during it. *)
open Hashcons_checks

type node = { group : int; number : int }

(* What `equal` does first, with the node in the table. *)
let first = ref (fun (_ : node) -> ())
let nothing (_ : node) = ()

module T = Hashcons.Make (struct
  type t = node

  let equal a b =
    !first a;
    a.group = b.group && a.number = b.number

  let hash n = n.group
end)

let make t group number = T.hashcons t { group; number }
let add t group number = ignore (opaque (make t group number))
let fill t group n = List.init n (make t group)

(* The time of a search is in proportion to what it compares. *)
let quadratic () =
  let time n =
    let once () =
      let t = T.create 1 in
      let start = Sys.time () in
      ignore (opaque (fill t 1 n));
      Sys.time () -. start
    in
    List.fold_left (fun least _ -> min least (once ())) infinity [ 1; 2; 3 ]
  in
  let few = time 400 in
  let many = time 1600 in
  (* 16 times as long; 64 times as long if it begins again for each *)
  check (Printf.sprintf "400 equal hashes: %.4f s, 1600: %.4f s" few many) (many < (36. *. few) +. 0.02)

exception Twice

(* Looks up nodes that are new, and one that is there; `during` is called at one comparison of each search, or at
   all. *)
let each_once (what, always, during) =
  let check text = check (what ^ ": " ^ text) in
  let n = 20 in
  let t = T.create 1 in
  let early = ref (fill t 1 30) in
  let held = List.init n (fun i -> make t 1 (1000 + i)) in
  (* room in front of those that are held *)
  check "filled" (List.length (opaque !early) = 30);
  early := [];
  majors 2;
  for round = 0 to 2 * n do
    let compared = Hashtbl.create 50 in
    let rec compare a =
      if Hashtbl.mem compared a then raise Twice;
      Hashtbl.add compared a ();
      if always || Hashtbl.length compared = 1 + (round / 2) then (
        first := nothing;
        during t round (Hashtbl.length compared);
        first := compare)
    in
    let is_new = round land 1 = 0 in
    let node = { group = 1; number = (if is_new then 5000 + round else 1000 + n - 1) } in
    first := compare;
    (match T.hashcons t node with
    | exception Twice -> check "compared twice" false
    | c ->
        first := nothing;
        check "found again" (T.hashcons t node == c && c.node = node);
        if what <> "clear" then
          if is_new then List.iter (fun v -> check "left out" (Hashtbl.mem compared v.Hashcons.node)) held
          else check "the same" (c == List.nth held (n - 1)));
    first := nothing;
    validate what
  done;
  let seen = Hashtbl.create 100 in
  T.iter (fun c -> check "one value" (not (Hashtbl.mem seen c.node)); Hashtbl.add seen c.node ()) t;
  ignore (opaque held)

let crowded () =
  quadratic ();
  let fresh round i = 10_000 + (1000 * round) + i in
  let some t n round = for i = 1 to n do add t 1 (fresh round i) done in
  let others t n round = for i = 1 to n do add t (fresh round i) i done in
  List.iter each_once
    [
      ("nothing", false, fun _ _ _ -> ());
      ("one more", false, fun t round _ -> some t 1 round);
      ("five more", false, fun t round _ -> some t 5 round);
      (* the table grows *)
      ("sixty more", false, fun t round _ -> some t 60 round);
      ("others", false, fun t round _ -> others t 200 round);
      (* and shrinks *)
      ("others that end", false, fun t round _ -> others t 300 round; majors 2);
      ("another at each comparison", true, fun t round i -> add t (fresh round i) i);
      ("collections", false, fun _ _ _ -> majors 1);
      ( "parts of collections",
        false,
        fun t round _ ->
          Gc.full_major ();
          if off_heap then slice (round * 3);
          some t 1 round );
      ("clear", false, fun t round _ -> T.clear t; some t 3 round);
      ("the same node", false, fun t round _ -> add t 1 (5000 + round));
      ("it has just come in front", false, fun t round _ -> some t 2 round; add t 1 (5000 + round));
    ]

(* Other domains make values in the same table all the time: that delays a search, which does not begin again. *)
let busy () =
  let t = T.create 1 and n = 300 and me = Hashcons_domains.self () in
  let held = fill t 1 n and stop = Atomic.make false and calls = ref 0 in
  (first :=
     fun _ ->
       if Hashcons_domains.self () = me then (
         incr calls;
         if !calls land 63 = 0 then Thread.yield ();
         if !calls > 100 * n then failwith "it begins again"));
  let work number () =
    let i = ref 0 in
    while (not (Atomic.get stop)) && !i < 2_000_000 do
      incr i;
      (* now and then with the same hash *)
      add t (if !i land 0x3fff = 0 then 1 else 2 + (!i land 0xffff)) ((number * 10_000_000) + !i)
    done
  in
  let domains = if Hashcons_domains.several = 1 then 0 else 3 in
  let running = List.init domains (fun i -> Hashcons_domains.spawn (work (1 + i))) in
  for i = 1 to 20 do
    calls := 0;
    match make t 1 (5000 + i) with
    | v -> check "new" (v.node.number = 5000 + i)
    | exception Failure m -> check m false
  done;
  Atomic.set stop true;
  List.iter (fun wait -> wait ()) running;
  first := nothing;
  List.iteri (fun i v -> check "the same" (make t 1 i == v)) held;
  validate "busy"
