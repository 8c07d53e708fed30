(* SPDX-License-Identifier: MIT *)
(* Hash tables beside those of the library, and with a bound; strings in cells. *)
open Linear_checks

module type CONTENTS = Linear_chains.CONTENTS

let left = ref (-1) (* calls of [equal] and [hash] until one raises *)

let counted f =
  decr left;
  if !left = 0 then raise Stop;
  f

module Model (K : CONTENTS) (V : CONTENTS) () = struct
  let hash_of = ref Hashtbl.hash

  module Key = struct
    include K

    let equal a b = counted (K.number a = K.number b)
    let hash a = counted (!hash_of (K.number a))
  end

  module T = L.Table.Make (Key) (V) ()

  let seen t = List.sort compare (T.fold (fun k v l -> (K.number k, V.number v) :: l) t [])
  let sorted m = List.sort compare (List.of_seq (Hashtbl.to_seq m))

  (* The model of a table with a bound: elements by use, the last one first. *)
  let unbound steps keys =
    let t = T.create () and m = Hashtbl.create 16 in
    for n = 1 to steps do
      let k = below keys in
      (match below 12 with
      | 0 | 1 | 2 | 3 | 4 -> T.replace (K.make k) (V.make n) t; Hashtbl.replace m k n
      | 5 | 6 -> T.remove (K.make k) t; Hashtbl.remove m k
      | 7 | 8 -> check "find" (Option.map V.number (T.find (K.make k) t) = Hashtbl.find_opt m k)
      | 9 -> check "mem" (T.mem (K.make k) t = Hashtbl.mem m k)
      | 10 ->
          left := 1 + below 6;
          (match below 4 with
          | 0 -> ( match T.replace (K.make k) (V.make n) t with () -> Hashtbl.replace m k n | exception Stop -> ())
          | 1 -> ( match T.remove (K.make k) t with () -> Hashtbl.remove m k | exception Stop -> ())
          | 2 -> ( match T.find (K.make k) t with _ -> () | exception Stop -> ())
          | _ -> ( match T.mem (K.make k) t with _ -> () | exception Stop -> ()));
          left := -1
      | _ ->
          if below 50 = 0 then begin
            let keeps _ v = v land 3 <> 0 in
            T.filter (fun k v -> keeps k (V.number v)) t;
            Hashtbl.filter_map_inplace (fun k v -> if keeps k v then Some v else None) m
          end
          else if below 300 = 0 then begin T.clear t; Hashtbl.reset m end);
      check "length" (T.length t = Hashtbl.length m);
      if n land 255 = 0 then begin
        whole "table" (T.check_table t);
        check "contents" (seen t = sorted m)
      end;
      if n land 4095 = 0 then Gc.compact ()
    done;
    check "cells" (T.live () = Hashtbl.length m);
    T.close t;
    raises "closed" L.Moved (fun () -> T.find (K.make 1) t);
    check "nothing is left" (T.live () = 0);
    whole "tables" (T.check ())

  let bound steps keys most =
    let evicted = ref [] in
    let t = T.create ~most ~evicted:(fun k v -> evicted := (K.number k, V.number v) :: !evicted) () in
    let m = ref [] in
    let use k = match List.assoc_opt k !m with Some v -> m := (k, v) :: List.remove_assoc k !m | None -> () in
    for n = 1 to steps do
      let k = below keys in
      evicted := [];
      (match below 8 with
      | 0 | 1 | 2 | 3 ->
          T.replace (K.make k) (V.make n) t;
          let all = (k, n) :: List.remove_assoc k !m in
          m := List.filteri (fun i _ -> i < most) all;
          check "what went" (!evicted = List.filteri (fun i _ -> i >= most) all)
      | 4 | 5 ->
          check "find" (Option.map V.number (T.find (K.make k) t) = List.assoc_opt k !m);
          use k
      | 6 -> check "mem" (T.mem (K.make k) t = List.mem_assoc k !m)
      | _ -> T.remove (K.make k) t; m := List.remove_assoc k !m);
      check "length" (T.length t = List.length !m);
      if n land 255 = 0 then begin
        whole "table" (T.check_table t);
        check "contents" (seen t = List.sort compare !m)
      end
    done;
    check "cells" (T.live () = List.length !m);
    T.close t;
    check "nothing is left" (T.live () = 0)

  let run n =
    let coarse k = k land 7 in
    List.iter
      (fun (keys, hash) ->
        hash_of := hash;
        unbound n keys;
        bound n keys (1 + (keys / 2));
        bound (n / 2) keys 1)
      [ (10, coarse); (100, Hashtbl.hash); (200, coarse); (5000, Hashtbl.hash) ];
    List.iter
      (fun hash ->
        hash_of := hash;
        unbound (n / 8) 60;
        bound (n / 8) 60 20)
      [
        (fun _ -> 0); (fun _ -> -1); (fun _ -> min_int); (fun _ -> max_int); (fun k -> -k); (fun k -> min_int + k);
        (fun k -> max_int - k); (fun k -> k lsl 56); (fun k -> k lsl 17);
      ]
end

module Numbers = Linear_chains.Numbers
module Copied = Linear_chains.Copied
module Texts = Linear_chains.Texts
module Of_numbers = Model (Numbers) (Numbers) ()
module Of_copied = Model (Copied) (Copied) ()
module Of_texts = Model (Texts) (Numbers) ()

let tables n =
  Of_numbers.run n;
  Of_copied.run (n / 2);
  Of_texts.run (n / 2)

(* What is called by a table uses it. *)
let reentrant () =
  let hook = ref ignore in
  let module T =
    L.Table.Make
      (struct
        include Ints

        let equal a b = !hook (); a = (b : int)
        let hash a = a
      end)
      (Ints)
      ()
  in
  let t = ref (T.create ()) in
  let uses =
    [
      ("replace", fun () -> T.replace 1 1 !t); ("remove", fun () -> T.remove 1 !t); ("clear", fun () -> T.clear !t);
      ("close", fun () -> T.close !t); ("filter", fun () -> T.filter (fun _ _ -> true) !t);
    ]
  in
  List.iter
    (fun (name, f) ->
      t := T.create ();
      T.replace 1 1 !t;
      let inside what g =
        hook := (fun () -> hook := ignore; raises (name ^ " inside of " ^ what) L.Borrowed f);
        g ();
        hook := ignore
      in
      inside "find" (fun () -> ignore (T.find 1 !t));
      inside "replace" (fun () -> T.replace 1 2 !t);
      inside "remove" (fun () -> T.remove 1 !t);
      T.replace 1 1 !t;
      T.iter (fun _ _ -> raises (name ^ " inside of iter") L.Borrowed f) !t;
      check "the same" (T.find 1 !t = Some 1);
      T.close !t;
      List.iter (fun (name, f) -> raises (name ^ " of a closed table") L.Moved f) uses)
    uses;
  (* [evicted] may use the table, and raise. *)
  let most = ref None in
  let evicted k _ = if k = 13 then raise Stop else match !most with Some t -> ignore (T.find k t) | None -> () in
  let b = T.create ~most:3 ~evicted () in
  most := Some b;
  for k = 10 to 15 do T.replace k k b done;
  raises "evicted" Stop (fun () -> T.replace 16 16 b);
  check "the new one is there" (T.mem 16 b && (not (T.mem 13 b)) && T.length b = 3);
  whole "table" (T.check_table b);
  T.close b;
  refused "no room" (fun () -> T.create ~most:0 ())

(* Keys that are equal and not the same: the first one stays, and no other is kept. *)
let equal_keys () =
  let ended = Hashtbl.create 10 in
  let module K = struct
    include L.Rooted (struct type t = int ref * int end) ()

    let equal (_, a) (_, b) = a = (b : int)
    let hash (_, a) = a
    let compare (_, a) (_, b) = compare (a : int) b
  end in
  let module T = L.Table.Make (K) (Ints) () in
  let module M = L.Map.Make (K) (Ints) () in
  let[@inline never] made n id =
    let r = ref id in
    Gc.finalise (fun r -> Hashtbl.replace ended !r ()) r;
    (r, n)
  in
  let t = T.create () and b = T.create ~most:2 () and m = ref (M.create ()) in
  let[@inline never] fill () =
    for n = 1 to 5 do
      T.replace (made 7 (100 + n)) n t;
      T.replace (made 7 (200 + n)) n b;
      m := M.add (made 7 (300 + n)) n !m
    done
  in
  fill ();
  collect ();
  List.iter
    (fun first ->
      check "the first key stays" (not (Hashtbl.mem ended (first + 1)));
      for n = 2 to 5 do check "no other key is kept" (Hashtbl.mem ended (first + n)) done)
    [ 100; 200; 300 ];
  let seven = (ref 0, 7) in
  check "the last value" (T.find seven t = Some 5 && T.find seven b = Some 5 && M.find seven !m = Some 5);
  T.iter (fun (r, _) _ -> check "the first key" (!r = 101)) t;
  T.remove seven t;
  T.remove seven b;
  m := M.remove seven !m;
  collect ();
  check "it has gone" (Hashtbl.length ended = 15);
  List.iter T.close [ t; b ];
  M.close !m

(* [equal] and [hash] that change their minds: elements may not be found, or be there twice, but none is lost. *)
let inconstant () =
  let module T =
    L.Table.Make
      (struct
        include Texts

        let equal a b = if below 4 = 0 then below 2 = 0 else number a = number b
        let hash a = if below 4 = 0 then Random.State.bits random - (1 lsl 29) else number a
      end)
      (Copied)
      ()
  in
  List.iter
    (fun most ->
      let gone = ref 0 in
      let t = T.create ?most ~evicted:(fun _ _ -> incr gone) () in
      for n = 1 to 4000 do
        let key = Texts.make (below 100) and before = T.length t in
        (match below 8 with
        | 0 | 1 | 2 | 3 -> T.replace key (Copied.make n) t; check "at most one more" (T.length t <= before + 1)
        | 4 -> T.remove key t
        | 5 -> Option.iter (fun v -> check "of its type" (Copied.number v <= n)) (T.find key t)
        | 6 -> ignore (T.mem key t)
        | _ -> if below 40 = 0 then T.filter (fun _ _ -> below 2 = 0) t);
        check "cells" (T.live () = T.length t);
        if n mod 100 = 0 then begin
          whole "table" (T.check_table t);
          let seen k v n = check "of its type" (Texts.number k < 100 && Copied.number v > 0); n + 1 in
          check "length" (T.fold seen t 0 = T.length t)
        end
      done;
      T.close t;
      check "nothing is left" (T.live () = 0))
    [ None; Some 1; Some 30 ]

(* What [evicted] does: anything that a program may. *)
let evicting () =
  let module T = Of_texts.T in
  let run what most evicted =
    let table = ref None and calls = ref 0 in
    let hook k v = incr calls; evicted (Option.get !table) !calls (Texts.number k) v in
    let t = T.create ~most ~evicted:hook () in
    table := Some t;
    let stopped = ref 0 and closed = ref false in
    (try
       for n = 1 to 50 do
         (try T.replace (Texts.make n) n t with Stop -> incr stopped);
         check (what ^ ": the new one is there") (T.mem (Texts.make n) t);
         check (what ^ ": the bound") (T.length t <= most);
         whole what (T.check_table t)
       done
     with L.Moved -> closed := true);
    if not !closed then T.close t;
    check (what ^ ": nothing is left") (T.live () = 0);
    (!calls, !stopped, !closed)
  in
  let all_but most = (50 - most, 0, false) in
  Of_texts.hash_of := Hashtbl.hash;
  (* Before there are domains. *)
  check "forks"
    (run "forks" 5 (fun t calls k _ ->
         let uses () = T.replace (Texts.make k) k t; if T.check_table t = "" then 7 else 1 in
         if calls = 1 then check "a child has its own" (in_child uses = Unix.WEXITED 7))
    = all_but 5);
  List.iter
    (fun most ->
      let is what wanted f = check what (run what most f = wanted) in
      is "raises" (50 - most, 50 - most, false) (fun _ _ _ _ -> raise Stop);
      is "closes" (1, 0, true) (fun t _ _ _ -> T.close t);
      is "starts a domain" (all_but most) (fun t calls k _ ->
          if calls < 4 then
            let find () = check "gone for another domain" (T.find (Texts.make k) t = None) in
            (Linear_domains.spawn find) ());
      is "collects" (all_but most) (fun _ calls _ _ -> if calls land 7 = 0 then Gc.compact ());
      is "filters" (all_but most) (fun t _ k _ -> T.filter (fun k' _ -> Texts.number k' <> k) t))
    [ 1; 2; 17 ];
  (* Each that goes comes back once, which takes another one out. *)
  let module S = T.Sharded in
  List.iter
    (fun most ->
      let back = ref 0 and table = ref None in
      let again add k v =
        if v < 1000 then begin
          incr back;
          add k (v + 1000) (Option.get !table)
        end
      in
      let t = T.create ~most ~evicted:(again (fun k v t -> T.replace k v t)) () in
      table := Some t;
      for n = 1 to 200 do T.replace (Texts.make n) n t done;
      check "they came back" (!back >= 200 - (2 * most) && T.length t = most);
      whole "table" (T.check_table t);
      T.close t)
    [ 1; 10 ];
  List.iter
    (fun most ->
      let back = ref 0 and table = ref None in
      let again k v =
        if v < 1000 then begin
          incr back;
          S.replace k (v + 1000) (Option.get !table)
        end
      in
      let t = S.create ~shards:1 ~most ~evicted:again () in
      table := Some t;
      for n = 1 to 200 do S.update (Texts.make n) (fun _ -> Some n) t done;
      check "they came back, in parts" (!back >= 200 - (2 * most) && S.length t = most);
      whole "table" (S.check_table t);
      S.close t)
    [ 1; 10 ];
  (* The largest bounds and the least. *)
  List.iter (fun most -> refused "no room" (fun () -> T.create ~most ())) [ 0; -1; min_int ];
  List.iter (fun most -> refused "no room in parts" (fun () -> S.create ~most ())) [ 0; -1; min_int ];
  List.iter (fun shards -> refused "parts" (fun () -> S.create ~shards ())) [ 0; -1; min_int; 4097; max_int ];
  List.iter
    (fun most ->
      let unused _ _ = check "nothing has to go" false in
      let t = T.create ~most ~evicted:unused () and s = S.create ~shards:64 ~most ~evicted:unused () in
      for n = 1 to 100 do T.replace (Texts.make n) n t; S.replace (Texts.make n) n s done;
      check "all are there" (T.length t = 100 && S.length s = 100 && T.check_table t = "" && S.check_table s = "");
      T.close t;
      S.close s)
    [ max_int; max_int - 1; max_int / 2 ];
  List.iter
    (fun (shards, most) ->
      let t = S.create ~shards ~most () in
      for n = 1 to 5000 do S.replace (Texts.make n) n t done;
      check "the bound" (S.length t <= most && S.length t > 0);
      S.close t)
    [ (4096, 1); (4096, 100); (4096, 4096); (100, 127); (1, 1) ];
  check "nothing is left" (T.live () = 0)

let keys () =
  equal_keys ();
  inconstant ();
  evicting ()

(* Strings of all lengths, in and out of cells. *)
let texts () =
  let module Q = Lists.Make (L.Text) () in
  let module T =
    L.Table.Make (Strings_hashed) (L.Text) ()
  in
  let text n = String.init n (fun i -> Char.chr (((i * 31) + n) land 255)) in
  let l = Q.of_list (List.init 1100 text) in
  Gc.compact ();
  check "all lengths" (Q.to_list l = List.init 1100 text);
  Q.borrow l (fun view ->
      List.iteri
        (fun n s ->
          let s' = L.Text.peek s in
          check "borrowed" (s' = text n && Hashtbl.hash s' = Hashtbl.hash (text n) && String.length s' = n);
          check "a copy" (L.Text.get s = s' && (n > 495 || L.Text.get s != s')))
        view);
  (* A copy stays when the text goes. *)
  let t = T.create () in
  List.iter (fun n -> T.replace (string_of_int n) (text n) t) (List.init 1000 Fun.id);
  let kept = List.init 1000 (fun n -> Option.get (T.find (string_of_int n) t)) in
  T.close t;
  Q.close l;
  check "no text is left" (L.Text.live () = 0);
  let l = Q.of_list (List.init 1000 (fun _ -> "something else")) in
  check "copies stay" (kept = List.init 1000 text);
  Q.close l;
  whole "texts" (L.Text.check ())

(* Many, which come and go: memory stays within bounds, and no operation takes long. *)
let cache n =
  let module T =
    L.Table.Make (Strings_hashed) (L.Text) ()
  in
  let gone = ref 0 in
  let t = T.create ~most:n ~evicted:(fun _ _ -> incr gone) () in
  let key i = "key " ^ string_of_int i and data i = String.make (20 + (i land 31)) 'd' ^ string_of_int i in
  for i = 1 to n do T.replace (key i) (data i) t done;
  let memory = T.memory () + L.Text.memory () in
  for i = n + 1 to 4 * n do T.replace (key i) (data i) t done;
  check "within bounds" (T.length t = n && !gone = 3 * n && T.memory () + L.Text.memory () < memory * 5 / 4);
  for i = (3 * n) + 1 to 4 * n do check "the last ones" (T.find (key i) t = Some (data i)) done;
  check "no other" (T.find (key n) t = None);
  whole "cache" (T.check_table t);
  T.close t;
  check "nothing is left" (T.live () = 0 && L.Text.live () = 0);
  whole "texts" (L.Text.check ())
