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
  (* Equal hashes are frequent. *)
  let coarse = ref false

  module Key = struct
    include K

    let equal a b = counted (K.number a = K.number b)
    let hash a = counted (if !coarse then K.number a land 7 else Hashtbl.hash (K.number a))
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
    List.iter
      (fun (keys, c) ->
        coarse := c;
        unbound n keys;
        bound n keys (1 + (keys / 2));
        bound (n / 2) keys 1)
      [ (10, true); (100, false); (200, true); (5000, false) ]
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

(* Strings of all lengths, in and out of cells. *)
let texts () =
  let module Q = Lists.Make (L.Text) () in
  let module T =
    L.Table.Make
      (struct
        include L.Text

        let equal = String.equal
        let hash = Hashtbl.hash
      end)
      (L.Text)
      ()
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
    L.Table.Make
      (struct
        include L.Text

        let equal = String.equal
        let hash = Hashtbl.hash
      end)
      (L.Text)
      ()
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
