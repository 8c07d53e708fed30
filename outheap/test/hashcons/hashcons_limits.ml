(* SPDX-License-Identifier: MIT *)
(* Much, deep, beside others, and without memory. *)
open Hashcons_checks
open Hashcons_terms

let table = Table.create 100
let add n = Table.hashcons table n
let here () = count Table.iter table

(* A chain of values; no recursion may follow it. *)
let deep n =
  let rec chain n v = if n = 0 then v else chain (n - 1) (add (Pair (v, v))) in
  let v = ref (Some (chain n (add Nil))) in
  majors 2;
  check "all are there" (here () = n + 1);
  let rec length n (t : term) = match t.node with Pair (a, _) -> length (n + 1) a | _ -> n in
  check "as long as it was" (length 0 (Option.get !v) = n);
  validate "deep";
  v := None;
  majors 3;
  check "and ends" (here () = 0)

(* Values that nobody keeps go by themselves, and leave their memory to others. *)
let churn n =
  let freed = (Hashcons.memory ()).freed in
  let kept = Array.make 1000 None in
  for i = 1 to n do
    let t = add (Pair (add (Leaf i), add (Text (string_of_int i)))) in
    if i mod 7 = 0 then kept.(i / 7 mod 1000) <- Some t
  done;
  if off_heap then (
    let m = Hashcons.memory () in
    check "freed by itself" (m.freed > freed && m.collections > 0));
  Array.iter
    (function
      | Some { Hashcons.node = Pair ({ node = Leaf i; _ }, { node = Text s; _ }); _ } ->
          check "kept" (string_of_int i = s)
      | _ -> check "kept" false)
    kept;
  validate "churn";
  Array.fill kept 0 1000 None;
  majors 3;
  check "all ends" (here () = 0);
  (* a function, so that no stack of bytecode holds them afterwards *)
  let[@inline never] all_sizes () =
    let sizes = List.init 200 (fun i -> add (Text (String.make (i * i * 5) 'x'))) in
    majors 2;
    List.iteri (fun i t -> check "sizes" (same t (SText (String.make (i * i * 5) 'x')))) sizes
  in
  all_sizes ();
  validate "sizes";
  majors 3;
  if off_heap then check "no memory is left" (here () = 0 && (Hashcons.memory ()).bytes = 0)

(* Domains that make the same values get the same values. *)
let domains rounds =
  for round = 1 to rounds do
    let shared = Table.create 1 and crowded = Crowded.create 1 in
    let shapes n =
      List.init 40 (fun i -> SPair (SLeaf (i mod 7), SMany [ SText (string_of_int (i + n)); SLeaf (i * n) ]))
    in
    let work number () =
      let mine = Random.State.make [| number; round |] in
      let kept = ref [] in
      for i = 1 to 30 do
        let s = shapes (Random.State.int mine 20) in
        let terms = List.map (build (Table.hashcons shared)) s in
        let more = List.map (build (Crowded.hashcons crowded)) s in
        if not (List.for_all2 same terms s && List.for_all2 same more s) then check "content" false;
        if i land 7 = number then kept := (s, terms, more) :: !kept;
        if i mod 20 = number then Gc.full_major () else if i mod 5 = 0 then Gc.minor ()
      done;
      !kept
    in
    let running = List.init Hashcons_domains.several (fun n -> Hashcons_domains.spawn (work n)) in
    let all = List.concat_map (fun wait -> wait ()) running in
    List.iter
      (fun (s, terms, more) ->
        List.iter2 (fun s t -> check "one value" (build (Table.hashcons shared) s == t)) s terms;
        List.iter2 (fun s t -> check "one value" (build (Crowded.hashcons crowded) s == t)) s more)
      all;
    let tags = Hashtbl.create 100 in
    Table.iter (fun t -> check "tags are unique" (not (Hashtbl.mem tags t.tag)); Hashtbl.add tags t.tag ()) shared;
    validate "domains";
    ignore (opaque all)
  done

(* 5.3.0 counts live words wrongly when domains end beside a compaction: its own debug runtime stops at that. *)
let compaction_miscounts =
  String.starts_with ~prefix:"5.3.0" Sys.ocaml_version && String.ends_with ~suffix:"d" (Sys.runtime_variant ())

(* Domains that look up, collect, list and clear a table, and come and go. *)
let mixed steps =
  let shared = Table.create 1 in
  let make s = build (Table.hashcons shared) s in
  let work number mine () =
    let below n = Random.State.int mine n in
    let kept = Array.make 30 None in
    for _ = 1 to steps do
      let i = below 30 in
      let s = SPair (SLeaf (below 50), SMany [ SText (string_of_int (below 50)); SNil ]) in
      (match below 100 with
      | 0 -> Hashcons.collect ()
      | 1 -> Table.iter (fun t -> ignore (opaque (shape t))) shared
      | 2 -> ignore (Table.stats shared)
      | 3 -> if number = 0 then Table.clear shared
      | 4 -> Gc.finalise (fun _ -> ignore (opaque (make s))) (ref 0)
      | 5 ->
          (* not as the domain's result: the runtime may keep that for ever, the stock one as well *)
          let made = ref None in
          let wait = Hashcons_domains.spawn (fun () -> made := Some (make s, s)) in
          wait ();
          kept.(i) <- !made;
          made := None
      | 6 -> if compaction_miscounts then Gc.full_major () else Gc.compact ()
      | 7 -> kept.(i) <- Some (build (Table.hashcons (Table.create 5)) s, s)
      | 8 -> validate "mixed"
      | _ -> kept.(i) <- Some (make s, s));
      Array.iter (function Some (v, s) -> check "content" (same v s) | None -> ()) kept
    done
  in
  let random = List.init Hashcons_domains.several (fun n -> Random.State.make [| n; below 1000 |]) in
  let running = List.mapi (fun n random -> Hashcons_domains.spawn (work n random)) random in
  List.iter (fun wait -> wait ()) running;
  validate "mixed, at the end";
  majors 6 (* finalisers, also of domains that have ended, make more in the first *);
  check "all ends" (count Table.iter shared = 0);
  ignore (opaque shared)

(* A program that does nothing but make values and drop them: what it makes has to drive the collector. *)
let paced () =
  if off_heap then (
    let t = Table.create 1 and made = 1_000_000 in
    for i = 1 to made do ignore (opaque (Table.hashcons t (Leaf i))) done;
    let left = count Table.iter t in
    check (Printf.sprintf "%d of %d are left" left made) (left < made / 2))

let threads () =
  let shared = Table.create 1 in
  let work number =
    for i = 1 to 3000 do
      let s = SPair (SLeaf (i land 63), SText (string_of_int (i land 31))) in
      let t = build (Table.hashcons shared) s in
      if i land 127 = number then Thread.yield ();
      check "content" (same t s && build (Table.hashcons shared) s == t)
    done
  in
  List.iter Thread.join (List.init 4 (fun n -> Thread.create work n));
  validate "threads"

(* Every allocation of the library fails once, and all from some point on: what there was is still right. *)
let failing () =
  if off_heap then (
    let shape i = SPair (SLeaf i, SMany [ SText (String.make (i * 300) 'x'); SPair (SNil, SLeaf (-i)) ]) in
    let shapes = List.init 300 shape in
    let one what fail_at =
      let t = Table.create 1 in
      let made = List.map (fun s -> (s, build (Table.hashcons t) s)) (List.filteri (fun i _ -> i mod 30 = 0) shapes) in
      ignore (fail fail_at);
      let more =
        match List.map (fun s -> (s, build (Table.hashcons t) s)) shapes with
        | more -> more
        | exception Out_of_memory -> []
      in
      Gc.full_major ();
      let failed = fail 0 in
      List.iter
        (fun (s, v) -> check (what ^ ": content") (same v s && build (Table.hashcons t) s == v))
        (List.rev_append made more);
      validate what;
      let wanted = reachable (List.map snd made @ List.map snd more) in
      majors 3;
      let there = count Table.iter t in
      check (Printf.sprintf "%s: %d of %d" what there wanted) (there = wanted);
      ignore (opaque (made, more));
      failed
    in
    let rec each n = if n < 200 && one (Printf.sprintf "failure %d" n) n > 0 then each (n + 1) else n in
    let n = each 1 in
    check (Printf.sprintf "%d failures" n) (n > 5);
    check "all fail" (one "all fail" (-1) > 0);
    (match ignore (fail (-1)); Table.create 100 with
    | _ -> check "create" false
    | exception Out_of_memory -> ());
    let t = (ignore (fail 0); Table.create 1) in
    let v = opaque (Table.hashcons t (Leaf 1)) in
    (match ignore (fail (-1)); Table.clear t with () -> check "clear" false | exception Out_of_memory -> ());
    ignore (fail 0);
    check "clear did nothing" (Table.hashcons t (Leaf 1) == v))

(* Marking of cells without memory for its stack: what it loses sight of is found again. *)
let stackless () =
  if off_heap then (
    let s = SMany (List.init 5000 (fun i -> SPair (SLeaf i, SPair (SNil, SLeaf (-i))))) in
    let v = opaque (build add s) in
    for _ = 1 to 5 do
      ignore (fail (-1));
      majors 3;
      ignore (fail 0);
      check "content" (same v s);
      validate "stackless"
    done;
    check "all of it" (here () = reachable [ v ]);
    ignore (opaque v))

(* Without address space for cells. *)
let little () =
  match
    let kept = ref [] in
    for i = 1 to max_int do
      let text = String.make 1_000_000 (Char.chr (i land 255)) in
      kept := add (Text (text ^ string_of_int i)) :: !kept
    done
  with
  | () -> ()
  | exception Out_of_memory ->
      majors 1;
      check "still works" (same (add (Leaf 5)) (SLeaf 5));
      validate "little"
