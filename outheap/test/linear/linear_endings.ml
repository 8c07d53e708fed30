(* SPDX-License-Identifier: MIT *)
(* What becomes of containers that are forgotten, of what is left of them, and of those that exceptions from outside
   stop in the middle. *)
open Linear_checks

module Name = struct
  include L.Rooted (Text) ()

  let equal = String.equal
  let hash = Hashtbl.hash
  let compare = String.compare
end

module R = Lists.Make (Name) ()
module Q = L.Queue.Make (Name) ()
module M = L.Map.Make (Name) (L.Text) ()
module T = L.Table.Make (Name) (L.Text) ()
module S = T.Sharded

(* Each kind of container, as a value with these functions. [fill] puts [n] elements in, [number] asks for a key. *)
type container = { length : unit -> int; number : int -> bool; add : int -> unit; close : unit -> unit }

let key n = "key " ^ string_of_int n
let up_to n = List.init n key

let of_list n =
  let l = ref (R.of_list (up_to n)) in
  {
    length = (fun () -> R.length !l); number = (fun n -> List.mem (key n) (R.to_list !l));
    add = (fun n -> l := R.cons (key n) !l); close = (fun () -> R.close !l);
  }

let of_queue n =
  let q = Q.create () in
  List.iter (fun k -> Q.push k q) (up_to n);
  {
    length = (fun () -> Q.length q); number = (fun n -> List.mem (key n) (Q.to_list q));
    add = (fun n -> Q.push (key n) q); close = (fun () -> Q.close q);
  }

let of_map n =
  let t = ref (List.fold_left (fun t k -> M.add k k t) (M.create ()) (up_to n)) in
  {
    length = (fun () -> M.length !t); number = (fun n -> M.mem (key n) !t);
    add = (fun n -> t := M.add (key n) "value" !t); close = (fun () -> M.close !t);
  }

let of_table ?most n =
  let t = T.create ?most () in
  List.iter (fun k -> T.replace k k t) (up_to n);
  {
    length = (fun () -> T.length t); number = (fun n -> T.find (key n) t <> None);
    add = (fun n -> T.replace (key n) "value" t); close = (fun () -> T.close t);
  }

let of_parts n =
  let t = S.create ~shards:4 () in
  List.iter (fun k -> S.replace k k t) (up_to n);
  {
    length = (fun () -> S.length t); number = (fun n -> S.find (key n) t <> None);
    add = (fun n -> S.replace (key n) "value" t); close = (fun () -> S.close t);
  }

let kinds =
  [
    ("list", of_list); ("queue", of_queue); ("map", of_map); ("table", fun n -> of_table n);
    ("cache", fun n -> of_table ~most:1000 n); ("parts", of_parts);
  ]

let live () = R.live () + Q.live () + M.live () + T.live ()

let nothing_is_left what =
  collect ();
  check (what ^ ": nothing is left") (live () = 0 && L.Text.live () = 0);
  List.iter (whole what) [ R.check (); Q.check (); M.check (); T.check (); L.Text.check () ]

(* It works, or says that it was consumed; it is not empty. *)
let works_or_moved what size c =
  match c.length () with
  | n ->
      check (what ^ ": its length") (n = size);
      check (what ^ ": its elements") (c.number 0 && c.number (size - 1) && not (c.number size));
      c.add size;
      check (what ^ ": one more") (c.number size);
      true
  | exception L.Moved ->
      raises (what ^ ": asked") L.Moved (fun () -> c.number 0);
      raises (what ^ ": changed") L.Moved (fun () -> c.add 1);
      raises (what ^ ": closed") L.Moved c.close;
      false

(* --- who gets at a container that was forgotten ------------------------------------------------------------------- *)

(* Finalisers of the program: one was attached before the container's, and one after it, so that in whatever order they
   run, some come before and some after. *)
let by_finalisers (what, make) =
  let found = ref [] and again = ref [] in
  let use c =
    found := works_or_moved (what ^ " in a finaliser") 20 c :: !found;
    again := c :: !again
  in
  let[@inline never] forget () =
    for _ = 1 to 10 do
      let before = ref None in
      Gc.finalise (fun r -> Option.iter use !r) before;
      let c = make 20 in
      before := Some c;
      Gc.finalise (fun r -> use !r) (ref c)
    done
  in
  forget ();
  collect ();
  check (what ^ ": the finalisers have run") (List.length !found = 20);
  check (what ^ ": some were whole, some were freed") (List.exists Fun.id !found && List.exists not !found);
  (* What the program has kept was freed. *)
  List.iter (fun c -> check (what ^ " that came back") (not (works_or_moved what 21 c))) !again;
  again := [];
  nothing_is_left what

(* Weak pointers lead to what has finalisers until these have run. *)
let by_weak_pointers ?most () =
  let all = Weak.create 50 and freed = ref 0 in
  let[@inline never] forget () =
    for i = 0 to 49 do
      let t = T.create ?most () in
      List.iter (fun k -> T.replace k k t) (up_to 20);
      Weak.set all i (Some t)
    done
  in
  let[@inline never] use () =
    for i = 0 to 49 do
      match Weak.get all i with
      | None -> ()
      | Some t -> (
          match T.find (key (i mod 20)) t with
          | v -> check "found by a weak pointer" (v = Some (key (i mod 20)) && T.check_table t = "")
          | exception L.Moved ->
              incr freed;
              raises "length" L.Moved (fun () -> T.length t);
              raises "replace" L.Moved (fun () -> T.replace "a" "b" t))
    done
  in
  (* A look at one keeps it in the cycle that has begun; which one finds it depends on the version. *)
  for cycles = 1 to 4 do
    forget ();
    for _ = 1 to cycles do Gc.major () done;
    use ()
  done;
  check "some were freed, and found" (!freed > 0);
  nothing_is_left "weak pointers"

(* A finaliser that reads a container, while the domain that has made it runs the container's own: if that domain was
   the first to see that it is forgotten. *)
let while_another_domain_frees () =
  let size = 1000 in
  let made = Atomic.make None and waits = Atomic.make false and reading = Atomic.make false in
  let freed = Atomic.make false and sum = ref 0 in
  let until condition = while not (Atomic.get condition) do Thread.yield () done in
  let fill v =
    let t = T.create () in
    for n = 0 to size - 1 do T.replace (key n) (v n) t done;
    t
  in
  let[@inline never] prepare () =
    Atomic.set made (Some (fill string_of_int));
    (* While a finaliser runs, no other one of its domain does. *)
    Gc.finalise (fun _ -> Atomic.set waits true; until reading) (ref 0)
  in
  let other () =
    prepare ();
    while not (Atomic.get waits) do Gc.full_major () done;
    collect ();
    let t = fill (fun _ -> "1000000") in
    Atomic.set freed true;
    T.close t
  in
  let join = Linear_domains.spawn other in
  until waits;
  let[@inline never] forget () =
    let t = Option.get (Atomic.exchange made None) in
    let once = ref true in
    let read _ v n =
      if !once then begin
        once := false;
        Atomic.set reading true;
        until freed
      end;
      n + int_of_string v
    in
    Gc.finalise (fun r -> sum := T.fold read !r 0) (ref t)
  in
  forget ();
  collect ();
  join ();
  check "what was read" (!sum = size * (size - 1) / 2);
  nothing_is_left "finalisers of two domains"

(* --- many, and rings ---------------------------------------------------------------------------------------------- *)

let many () =
  let[@inline never] forget () =
    for n = 1 to 10_000 do ignore (opaque (snd (List.nth kinds (n mod List.length kinds)) (n land 3))) done
  in
  forget ();
  nothing_is_left "many"

(* A container that holds itself is not forgotten, until it holds itself no more. *)
let rings () =
  let module O = L.Queue.Make (L.Rooted (struct type t = Obj.t end) ()) () in
  let inside = Weak.create 1 in
  let[@inline never] forget () =
    let q = O.create () in
    let held = ref q in
    Weak.set inside 0 (Some held);
    O.push (Obj.repr held) q;
    O.push (Obj.repr (String.make 3 'a')) q
  in
  forget ();
  collect ();
  check "it is there" (O.live () = 2);
  let[@inline never] unlink () = Option.iter (fun held -> ignore (O.pop !held)) (Weak.get inside 0) in
  unlink ();
  collect ();
  check "it is forgotten" (O.live () = 0)

(* Values whose finalisers use the container that held them, in the middle of whatever it does. *)
let used_by_finalisers () =
  let module V = L.Rooted (struct type t = int ref end) () in
  let module T =
    L.Table.Make (Ints_hashed) (V) ()
  in
  let t = T.create () and worked = ref 0 and told = ref 0 in
  let use v =
    match T.replace (1000 + !v) (ref !v) t with
    | () -> incr worked
    | exception L.Borrowed -> incr told
    | exception L.Moved -> () (* at the end *)
  in
  let make n =
    let v = ref n in
    Gc.finalise use v;
    v
  in
  let rounds = 20_000 in
  for n = 1 to rounds do
    T.replace (n mod 100) (make n) t;
    if n mod 50 = 0 then T.remove (n mod 7) t;
    if n mod 600 = 0 then Gc.full_major ();
    if n mod 1000 = 0 then
      T.iter
        (fun k v ->
          if k < 100 then check "of its key" (!v mod 100 = k);
          if k = 50 then Gc.full_major ())
        t
  done;
  collect ();
  check "they were told, or have worked" (!worked > 0 && !told > 0 && !worked + !told > rounds * 9 / 10);
  check "all they added" (T.fold (fun k v n -> if k >= 1000 && !v + 1000 = k then n + 1 else n) t 0 = !worked);
  whole "table" (T.check_table t);
  T.close t;
  check "nothing is left" (T.live () = 0)

(* --- what is left of elements ------------------------------------------------------------------------------------- *)

(* The number of an element that has gone leads to another value of its type, or to none. *)
let stale_numbers () =
  let long n = String.make 600 'l' ^ string_of_int n in
  let module X = Lists.Make (L.Text) () in
  let l = R.of_list (up_to 100) and x = X.of_list (List.init 100 long) in
  let numbers = R.borrow l (List.map Fun.id) and texts = X.borrow x (List.map Fun.id) in
  check "numbers, while they are there" (List.map Name.get numbers = up_to 100);
  check "texts, while they are there" (List.map L.Text.peek texts = List.init 100 long);
  R.close l;
  X.close x;
  List.iter (fun n -> raises "a number that is free" L.Moved (fun () -> Name.get n)) numbers;
  List.iter (fun n -> raises "a long text that has gone" L.Moved (fun () -> L.Text.get n)) texts;
  List.iter (fun n -> raises "a long text that has gone, borrowed" L.Moved (fun () -> L.Text.peek n)) texts;
  let l = R.of_list (List.init 60 (fun _ -> "other")) in
  let there = ref 0 in
  let look n = match Name.get n with s -> incr there; check "another" (s = "other") | exception L.Moved -> () in
  List.iter look numbers;
  check "as many as there are" (!there = 60);
  R.close l;
  nothing_is_left "stale numbers"

(* Owners are no values to compare or to write; they are refused before anything of theirs is looked at. *)
let not_values () =
  L.poison true;
  let q = Q.create () and t = T.create ~most:5 () and p = S.create ~shards:2 () in
  List.iter (fun k -> Q.push k q; T.replace k k t; S.replace k k p) (up_to 9);
  while Q.pop q <> None do () done;
  let l = R.of_list (up_to 1000) and m = M.add "a" "b" (M.create ()) in
  let l' = R.of_list (up_to 1000) and t' = T.create ~most:5 () in
  let refuses what v v' =
    refused ("comparing a " ^ what) (fun () -> compare v v');
    refused ("equality of a " ^ what) (fun () -> v = v');
    let marshalled flags = refused ("marshalling a " ^ what) (fun () -> Marshal.to_string v flags) in
    List.iter marshalled [ []; [ Closures ] ]
  in
  refuses "list" l l';
  refuses "queue" q (Q.create ());
  refuses "map" m (M.create ());
  refuses "table" t t';
  refuses "table in parts" p (S.create ~shards:2 ());
  check "what is one is not looked at" (compare l l = 0 && compare t t = 0);
  ignore (List.map Hashtbl.hash [ Obj.repr l; Obj.repr q; Obj.repr m; Obj.repr t; Obj.repr p ]);
  L.poison false;
  R.close l;
  R.close l';
  M.close m;
  List.iter T.close [ t; t' ];
  S.close p;
  nothing_is_left "not values"

let endings () =
  List.iter by_finalisers kinds;
  by_weak_pointers ();
  by_weak_pointers ~most:30 ();
  (* OCaml 5.1 loses finalisers there (docs/internals/upstream.md). *)
  if Linear_domains.several > 1 && (Sys.ocaml_release.major, Sys.ocaml_release.minor) > (5, 1) then
    for _ = 1 to 8 do while_another_domain_frees () done;
  many ();
  rings ();
  used_by_finalisers ();
  stale_numbers ();
  not_values ()
