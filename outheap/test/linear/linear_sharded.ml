(* SPDX-License-Identifier: MIT *)
(* Tables that several domains use at once. *)
open Linear_checks
open Linear_domains

let hook = ref ignore

module Model (K : Linear_chains.CONTENTS) (V : Linear_chains.CONTENTS) () = struct
  module T =
    L.Table.Make
      (struct
        include K

        let equal a b = !hook (); K.number a = K.number b
        let hash a = Hashtbl.hash (K.number a)
      end)
      (V)
      ()

  module S = T.Sharded

  let sorted l = List.sort compare l
  let seen t = sorted (S.fold (fun k v l -> (K.number k, V.number v) :: l) t [])

  (* Beside a table of the library; functions that raise leave it as it was. *)
  let unbound steps keys shards =
    let t = S.create ~shards () and m = Hashtbl.create 16 in
    for n = 1 to steps do
      let k = below keys in
      let key = K.make k in
      (match below 10 with
      | 0 | 1 | 2 -> S.replace key (V.make n) t; Hashtbl.replace m k n
      | 3 | 4 -> check "find" (Option.map V.number (S.find key t) = Hashtbl.find_opt m k)
      | 5 -> check "mem" (S.mem key t = Hashtbl.mem m k)
      | 6 -> S.remove key t; Hashtbl.remove m k
      | 7 -> (
          let change = function None -> Some n | Some v -> if v land 1 = 0 then None else Some (v + n) in
          S.update key (fun v -> Option.map V.make (change (Option.map V.number v))) t;
          match change (Hashtbl.find_opt m k) with Some v -> Hashtbl.replace m k v | None -> Hashtbl.remove m k)
      | 8 ->
          raises "update" Stop (fun () -> S.update key (fun _ -> raise Stop) t);
          hook := (fun () -> raise Stop);
          (match S.replace key (V.make n) t with () -> Hashtbl.replace m k n | exception Stop -> ());
          (match S.remove key t with () -> Hashtbl.remove m k | exception Stop -> ());
          hook := ignore
      | _ ->
          if below 100 = 0 then begin
            let keeps v = v land 7 <> 0 in
            S.filter (fun _ v -> keeps (V.number v)) t;
            Hashtbl.filter_map_inplace (fun _ v -> if keeps v then Some v else None) m
          end
          else if below 500 = 0 then begin S.clear t; Hashtbl.reset m end);
      check "length" (S.length t = Hashtbl.length m);
      if n land 255 = 0 then begin
        whole "sharded" (S.check_table t);
        check "contents" (seen t = sorted (List.of_seq (Hashtbl.to_seq m)))
      end
    done;
    check "cells" (T.live () = Hashtbl.length m);
    S.close t;
    raises "closed" L.Moved (fun () -> S.find (K.make 1) t);
    raises "closed" L.Moved (fun () -> S.close t);
    check "nothing is left" (T.live () = 0)

  (* What there is and what was evicted is all that was added; the bound is kept; [evicted] may use the table. *)
  let bound steps keys shards most =
    let m = Hashtbl.create 16 and table = ref None in
    let evicted k v =
      check "evicted once" (Hashtbl.find_opt m (K.number k) = Some (V.number v));
      Hashtbl.remove m (K.number k);
      Option.iter (fun t -> check "it is gone" (not (S.mem k t))) !table
    in
    let t = S.create ~shards ~most ~evicted () in
    table := Some t;
    for n = 1 to steps do
      let k = below keys in
      Hashtbl.replace m k n;
      if below 2 = 0 then S.replace (K.make k) (V.make n) t else S.update (K.make k) (fun _ -> Some (V.make n)) t;
      check "the new one" (Option.map V.number (S.find (K.make k) t) = Some n);
      check "the bound" (S.length t <= most && S.length t = Hashtbl.length m)
    done;
    if most >= 2 * shards then check "about full" (S.length t >= most / 2);
    check "contents" (seen t = sorted (List.of_seq (Hashtbl.to_seq m)));
    whole "sharded" (S.check_table t);
    S.close t;
    check "nothing is left" (T.live () = 0)

  let run n =
    List.iter (unbound n 300) [ 1; 3; 16; 4096 ];
    unbound n 5000 16;
    List.iter (fun (shards, most) -> bound n 200 shards most) [ (1, 1); (1, 50); (16, 3); (16, 100); (5, 64) ]
end

module Of_numbers = Model (Linear_chains.Numbers) (Linear_chains.Copied) ()
module Of_texts = Model (Linear_chains.Texts) (Linear_chains.Numbers) ()

let one_part () =
  let module T = Of_numbers.T in
  let module S = T.Sharded in
  let t = S.create ~shards:1 () in
  let number = Linear_chains.Numbers.make and text = Linear_chains.Copied.make in
  let one = number 1 in
  S.replace one (text 1) t;
  let uses =
    [
      ("find", fun () -> ignore (S.find one t)); ("replace", fun () -> S.replace one (text 2) t);
      ("remove", fun () -> S.remove one t); ("update", fun () -> S.update one Fun.id t);
      ("fold", fun () -> S.fold (fun _ _ () -> ()) t ()); ("clear", fun () -> S.clear t);
      ("close", fun () -> S.close t);
    ]
  in
  List.iter
    (fun (name, f) ->
      S.iter (fun _ _ -> raises (name ^ " inside of iter") L.Borrowed f) t;
      S.update one (fun v -> raises (name ^ " inside of update") L.Borrowed f; v) t;
      hook := (fun () -> hook := ignore; raises (name ^ " inside of find") L.Borrowed f);
      check "there" (S.mem one t))
    uses;
  (* The lock was given back each time. *)
  check "the same" (Option.map Linear_chains.Copied.number (S.find one t) = Some 1);
  refused "marshalling" (fun () -> Marshal.to_string t [ Closures ]);
  refused "comparison with another of one part" (fun () -> t = S.create ~shards:1 ());
  refused "comparison with one of two parts" (fun () -> t = S.create ~shards:2 ());
  refused "order" (fun () -> compare (S.create ~shards:2 ()) t);
  S.close t;
  refused "no parts" (fun () -> S.create ~shards:0 ());
  refused "too many parts" (fun () -> S.create ~shards:4097 ());
  refused "no room" (fun () -> S.create ~most:0 ())

(* What has to go is the element that was not used for longest; a function that raises has used none. *)
let order_of_use () =
  let module S = Of_numbers.T.Sharded in
  let number = Linear_chains.Numbers.make and text = Linear_chains.Copied.make in
  let evicted_after use =
    let gone = ref [] in
    let t = S.create ~shards:1 ~most:2 ~evicted:(fun k _ -> gone := Linear_chains.Numbers.number k :: !gone) () in
    S.replace (number 1) (text 1) t;
    S.replace (number 2) (text 2) t;
    use t;
    S.replace (number 3) (text 3) t;
    S.close t;
    !gone
  in
  let update f t = S.update (number 1) f t in
  check "the oldest" (evicted_after ignore = [ 1 ]);
  check "not what was looked for" (evicted_after (fun t -> ignore (S.find (number 1) t)) = [ 2 ]);
  check "mem is no use" (evicted_after (fun t -> ignore (S.mem (number 1) t)) = [ 1 ]);
  check "not what was updated" (evicted_after (update Fun.id) = [ 2 ]);
  let failing t = raises "update" Exit (fun () -> update (fun _ -> raise Exit) t) in
  check "nothing has changed" (evicted_after failing = [ 1 ]);
  check "what is updated to nothing goes" (evicted_after (update (fun _ -> None)) = [])

(* A part that is in use when others are closed is closed by another call; then all are. *)
let closed_in_turn () =
  let module T = Of_numbers.T in
  let module S = T.Sharded in
  let t = S.create ~shards:4 () in
  for n = 1 to 40 do S.replace (Linear_chains.Numbers.make n) (Linear_chains.Copied.make n) t done;
  for n = 1 to 40 do
    let key = Linear_chains.Numbers.make n in
    match S.update key (fun v -> raises "close inside" L.Borrowed (fun () -> S.close t); v) t with
    | () -> ()
    | exception L.Moved -> ()
  done;
  S.close t;
  check "all is freed" (T.live () = 0);
  raises "closed" L.Moved (fun () -> S.close t)

(* A process that is forked by a function that runs with the lock of a part can use that part. *)
let forked () =
  let module S = Of_numbers.T.Sharded in
  let t = S.create ~shards:4 () in
  let number = Linear_chains.Numbers.make and text = Linear_chains.Copied.make in
  for n = 1 to 40 do S.replace (number n) (text n) t done;
  let child = ref (-1) in
  flush_all ();
  (match S.update (number 7) (fun v -> child := Unix.fork (); v) t with
  | () -> if !child = 0 then ignore (Unix.alarm 30)
  | exception _ when !child = 0 -> Unix._exit 1);
  if !child = 0 then
    Unix._exit
      (match for n = 1 to 40 do S.update (number n) (fun _ -> Some (text 3)) t done with
      | () -> if S.length t = 40 && S.check_table t = "" then 7 else 2
      | exception _ -> 3);
  check "a child has its own" (snd (Unix.waitpid [] !child) = Unix.WEXITED 7);
  check "and leaves ours alone" (Option.map Linear_chains.Copied.number (S.find (number 7) t) = Some 7);
  S.close t

(* Each allocation outside the heap fails once: what was begun is as it was, and nothing is left of it. *)
let short_of_memory () =
  let module T = Of_texts.T in
  let module S = T.Sharded in
  let failed = ref 0 in
  let trying what nth f undo =
    let rec go n =
      ignore (fail n);
      match f () with
      | result ->
          let left = fail 0 in
          if left > 0 then result
          else begin
            undo result;
            go (n + 1)
          end
      | exception Out_of_memory ->
          check (what ^ ": it was to fail") (fail 0 = 0);
          incr failed;
          go (n + 1)
    in
    go nth
  in
  let t = trying "create" 1 (fun () -> S.create ~shards:4 ()) S.close in
  check "some have failed" (!failed >= 8);
  (* Enough elements for buckets in several segments, whose allocation may fail without harm. *)
  for n = 1 to 60_000 do
    if n land 63 = 0 then ignore (fail (1 + (n lsr 6 land 3)));
    match S.replace (Linear_chains.Texts.make n) n t with
    | () -> ()
    | exception Out_of_memory -> check "not there" (not (S.mem (Linear_chains.Texts.make n) t)); incr failed
  done;
  ignore (fail 0);
  check "whole" (S.check_table t = "" && S.length t > 50_000 && T.live () = S.length t);
  collect ();
  check "what was begun is not left" (T.live () = S.length t);
  S.close t;
  whole "cells" (T.check ());
  (* With a bound: where memory is missing nothing goes, and what goes is handed on. *)
  let gone = ref 0 and added = ref 0 in
  let t = S.create ~shards:2 ~most:50 ~evicted:(fun _ _ -> incr gone) () in
  for n = 1 to 3_000 do
    ignore (fail (1 + (n land 3)));
    match S.replace (Linear_chains.Texts.make n) n t with () -> incr added | exception Out_of_memory -> incr failed
  done;
  ignore (fail 0);
  check "none is lost" (S.length t = !added - !gone && !gone > 1_000);
  S.close t

(* An exception that comes from outside, at each place where one can come in turn: what has gone was handed on. *)
let interrupted () =
  let module S = Of_texts.T.Sharded in
  let module Texts = Linear_chains.Texts in
  let gone = Hashtbl.create 100 and stopped = ref 0 in
  let evicted k _ =
    armed := false;
    Hashtbl.replace gone (Texts.number k) ();
    () (* no call at the end, or signals may be handled before the first line *)
  in
  let most = 8 in
  let t = S.create ~shards:1 ~most ~evicted () in
  for n = 1 to most do S.replace (Texts.make n) n t done;
  let rec try_each n place =
    let key = Texts.make n in
    let interrupted = stopping place (fun () -> S.replace key n t) = None in
    for old = 1 to n - 1 do
      check "what has gone was handed on, and nothing else" (S.mem (Texts.make old) t <> Hashtbl.mem gone old)
    done;
    check "whole" (S.check_table t = "" && S.length t <= most);
    if interrupted then begin
      incr stopped;
      if not (S.mem key t || Hashtbl.mem gone n) then S.replace key n t;
      try_each (n + 1) (place + 1)
    end
  in
  with_stops (fun () ->
      try_each (most + 1) 1;
      check "some were interrupted" (!stopped > 2));
  S.close t

let sharded n =
  Of_numbers.run n;
  Of_texts.run n;
  one_part ();
  order_of_use ();
  closed_in_turn ();
  forked ();
  short_of_memory ();
  interrupted ()

(* --- from several domains ----------------------------------------------------------------------------------------- *)

module Counts =
  L.Table.Make
    (struct
      include Ints

      let equal (a : int) b = a = b
      let hash a = a * 7919
    end)
    (Ints)
    ()

module Strings =
  L.Table.Make (Strings_hashed) (L.Text) ()

let at_once f = List.init several (fun id -> spawn (fun () -> f id)) |> List.iter (fun join -> join ())

(* No increment is lost, on however many locks; a domain that waits does not hold up a collection. *)
let counting shards =
  let module S = Counts.Sharded in
  let t = S.create ~shards () and each = 20_000 and keys = 10 in
  at_once (fun id ->
      let random = Random.State.make [| id |] in
      for i = 1 to each do
        S.update (Random.State.int random keys) (fun v -> Some (1 + Option.value v ~default:0)) t;
        if i mod 2000 = 0 then S.update 0 (fun v -> Gc.minor (); v) t;
        if i = 7000 && id = 0 then S.update 0 (fun v -> Gc.full_major (); v) t
      done);
  check "all are counted" (S.fold (fun _ v sum -> v + sum) t 0 = several * each);
  whole "sharded" (S.check_table t);
  S.close t

(* A cache of strings under load: what is found belongs to its key, the bound is kept, nothing is lost. *)
let caching shards =
  let module S = Strings.Sharded in
  let most = 500 and gone = Atomic.make 0 and added = Atomic.make 0 and removed = Atomic.make 0 in
  let value k n = k ^ ":" ^ String.make (n * 37 mod 600) 'v' in
  let belongs k v = String.length v > String.length k && String.sub v 0 (String.length k + 1) = k ^ ":" in
  let evicted k v = check "evicted of its key" (belongs k v); Atomic.incr gone in
  let t = S.create ~shards ~most ~evicted () in
  at_once (fun id ->
      let random = Random.State.make [| id |] in
      for n = 1 to 20_000 do
        let k = "key " ^ string_of_int (Random.State.int random 2000) in
        match Random.State.int random 8 with
        | 0 | 1 | 2 ->
            S.update k (fun v -> if v = None then Atomic.incr added; Some (value k n)) t;
        | 3 | 4 | 5 -> Option.iter (fun v -> check "of its key" (belongs k v)) (S.find k t)
        | 6 -> S.update k (fun v -> if v <> None then Atomic.incr removed; None) t
        | _ -> if n mod 500 = 0 then S.iter (fun k v -> check "of its key" (belongs k v)) t
      done);
  check "the bound" (S.length t <= most);
  check "nothing is lost" (S.length t = Atomic.get added - Atomic.get gone - Atomic.get removed);
  whole "sharded" (S.check_table t);
  check "cells" (Strings.live () = S.length t);
  S.close t;
  whole "cells" (Strings.check ());
  check "nothing is left" (Strings.live () = 0)

(* Closed meanwhile: others are told, and do no harm. *)
let closing () =
  let module S = Counts.Sharded in
  for _ = 1 to 20 do
    let t = S.create ~shards:4 () in
    at_once (fun id ->
        match
          for i = 1 to 1000 do
            S.replace i id t;
            if i = 500 && id = 0 then S.close t
          done
        with
        | () -> check "it was closed" (id <> 0)
        | exception L.Moved -> ())
  done;
  collect ();
  check "nothing is left" (Counts.live () = 0)

let sharing () =
  List.iter counting [ 1; 4; 16 ];
  List.iter caching [ 1; 16 ];
  closing ()
