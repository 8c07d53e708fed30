(* SPDX-License-Identifier: MIT *)
(* Signals wherever one is handled, the end of the stack in what frees, memory that is not cells, and what is asked
   while others write. *)
open Linear_checks
module R = Outheap_region

(* A signal comes now; OCaml handles it when it next looks. *)
external signal : unit -> unit = "linear_test_signal" [@@noalloc]
external high : unit -> bool = "linear_test_high" [@@noalloc]

(* --- signals ------------------------------------------------------------------------------------------------------ *)

let due = ref false

(* What functions of the program return, with a signal meanwhile if one is due. *)
let signalled result =
  if !due then begin
    due := false;
    signal ()
  end;
  result

module Word = struct
  include L.Text

  let equal a b = signalled (String.equal a b)
  let hash = Hashtbl.hash
  let compare a b = let c = String.compare a b in if c = 0 then signalled c else c
end

module Words = Lists.Make (Word) ()
module Line = L.Queue.Make (Word) ()
module Book = L.Map.Make (Word) (Word) ()
module Index = L.Table.Make (Word) (Word) ()

let word n = "word " ^ string_of_int n
let words n = List.init n word
let long n = String.make 600 'l' ^ word n

let no_text_is_left what =
  collect ();
  check (what ^ ": no text is left") (L.Text.live () = 0);
  check (what ^ ": no cell is left") (Words.live () + Line.live () + Book.live () + Index.live () = 0)

(* [f ()], in which a signal comes; its handler raises [Exit] where it is handled, which may be after [f]. *)
let with_signal f =
  let handled = ref false in
  let handler _ = handled := true; raise Exit in
  let old = Sys.signal Sys.sigusr1 (Sys.Signal_handle handler) in
  due := true;
  (match
     f ();
     while not (!due || !handled) do ignore (opaque (ref 0)) done
   with
  | () -> ()
  | exception Exit -> ());
  check "there was a signal" (not !due);
  due := false;
  Sys.set_signal Sys.sigusr1 old

(* It can be used, or was consumed. *)
let usable what f = match f () with _ -> () | exception L.Moved -> () | exception L.Borrowed -> check what false

let of_callbacks () =
  let list () = Words.of_list (words 10) in
  List.iter
    (fun (what, f) ->
      let l = list () in
      with_signal (fun () -> ignore (f l));
      usable (what ^ ": it can be used") (fun () -> Words.close l);
      no_text_is_left what)
    [
      ("filter", fun l -> Words.filter (fun _ -> signalled false) l);
      ("partition", fun l -> fst (Words.partition (fun _ -> signalled false) l));
      ("map", fun l -> Words.map (fun w -> signalled w) l);
      ("sort", fun l -> Words.sort Word.compare (Words.cons (word 3) l));
    ];
  let book () = List.fold_left (fun b w -> Book.add w w b) (Book.create ()) (words 10) in
  List.iter
    (fun (what, f) ->
      let b = book () in
      with_signal (fun () -> ignore (f b));
      usable (what ^ ": it can be used") (fun () -> Book.close b);
      no_text_is_left what)
    [
      ("remove from a map", fun b -> Book.remove (word 3) b); ("add to a map", fun b -> Book.add (word 3) "other" b);
      ("find in a map", fun b -> ignore (Book.find (word 3) b); b);
    ];
  List.iter
    (fun most ->
      List.iter
        (fun (what, f) ->
          let t = Index.create ?most ~evicted:(fun _ _ -> ()) () in
          List.iter (fun w -> Index.replace w w t) (words 10);
          with_signal (fun () -> f t);
          usable (what ^ ": it can be used") (fun () -> Index.replace "a" "b" t);
          whole what (Index.check_table t);
          check (what ^ ": cells") (Index.live () = Index.length t);
          Index.close t;
          no_text_is_left what)
        [
          ("remove", fun t -> Index.remove (word 3) t); ("replace", fun t -> Index.replace (word 3) "other" t);
          ("find", fun t -> ignore (Index.find (word 3) t));
          ("filter the table", fun t -> Index.filter (fun _ _ -> signalled false) t);
        ])
    [ None; Some 10 ]

(* Where the program's functions are not called: by a timer, so by chance. [step] changes the container; [again] says
   that it can be used, and fills it. *)
let by_chance step again =
  let armed = ref false in
  let handle _ =
    if !armed then begin
      armed := false;
      raise Exit
    end
  in
  let old = Sys.signal Sys.sigalrm (Sys.Signal_handle handle) in
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.0002; it_value = 0.0002 });
  let stopped = ref 0 in
  while !stopped < 300 do
    try
      armed := true;
      for _ = 1 to 1000 do step () done;
      armed := false
    with Exit -> incr stopped; again ()
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Sys.set_signal Sys.sigalrm old

let of_a_timer () =
  let q = Line.create () in
  let fill () = for n = Line.length q + 1 to 20 do Line.push (word n) q done in
  fill ();
  by_chance
    (fun () -> match Line.pop q with Some w -> Line.push w q | None -> ())
    (fun () -> match fill () with () -> () | exception L.Borrowed -> check "the queue can be used" false);
  (match Line.close q with () -> () | exception L.Borrowed -> ());
  no_text_is_left "queue";
  let l = ref (Words.of_list (words 20)) in
  by_chance
    (fun () -> match Words.uncons !l with Some (w, rest) -> l := rest; l := Words.cons w !l | None -> ())
    (fun () ->
      match Words.length !l with
      | n -> if n = 0 then l := Words.of_list (words 20); usable "the list can be used" (fun () -> Words.to_list !l)
      | exception L.Moved -> l := Words.of_list (words 20));
  usable "the list can be used" (fun () -> Words.close !l);
  no_text_is_left "list";
  let t = Index.create ~most:20 ~evicted:(fun _ _ -> ()) () and n = ref 0 in
  by_chance
    (fun () ->
      incr n;
      let w = if !n land 7 = 0 then long (!n land 63) else word (!n land 63) in
      if !n land 3 = 0 then Index.remove w t else Index.replace w w t)
    (fun () ->
      usable "the table can be used" (fun () -> Index.find "a" t);
      whole "table" (Index.check_table t);
      check "cells" (Index.live () = Index.length t));
  usable "the table can be used" (fun () -> Index.close t);
  no_text_is_left "table";
  let gone = ref 0 in
  let evicted _ _ =
    incr gone;
    () (* no call at the end, or signals may be handled before the first line *)
  in
  let t = Index.create ~most:20 ~evicted () and n = ref 0 and added = ref 0 and counted = ref 0 in
  let count () = counted := !n; incr added in
  by_chance
    (fun () ->
      incr n;
      let w = word !n in
      Index.replace w w t;
      count ())
    (fun () ->
      if !counted <> !n && Index.mem (word !n) t then count ();
      check "what has gone was handed on" (Index.length t + !gone = !added));
  usable "the table can be used" (fun () -> Index.close t);
  no_text_is_left "evicted"

let signals () =
  if Sys.backend_type = Sys.Native then begin
    of_callbacks ();
    of_a_timer ()
  end

(* --- where the stack ends ----------------------------------------------------------------------------------------- *)

(* Removing what there is, and what has to go, at each depth near the end of the stack. *)
module Ends (K : Linear_chains.CONTENTS) (V : Linear_chains.CONTENTS) () = struct
  module Key = struct
    include K

    let equal a b = K.number a = K.number b
    let hash a = K.number a
    let compare a b = compare (K.number a) (K.number b)
  end

  module T = L.Table.Make (Key) (V) ()
  module M = L.Map.Make (Key) (V) ()
  module Q = L.Queue.Make (V) ()
  module N = Lists.Make (V) ()

  let size = 12
  let live () = T.live () + M.live () + Q.live () + N.live () + L.Text.live ()

  let each deepest what f =
    let stopped = ref 0 in
    for above = 0 to 160 do
      let at_the_end g = match Linear_endings.at (deepest - above) g with
        | () -> () | exception Stack_overflow -> incr stopped
      in
      let before = live () in
      f at_the_end;
      check (what ^ ": nothing is left") (live () = before)
    done;
    check (what ^ ": the stack has ended") (!stopped > 0)

  let usable what f = match f () with r -> r | exception L.Borrowed -> check (what ^ ": it can be used") false

  let run deepest =
    let each what f = each deepest what (f what) in
    let filled most evicted =
      let t = T.create ?most ~evicted () in
      for n = 1 to size do T.replace (K.make n) (V.make n) t done;
      t
    in
    each "table, remove" (fun what at_the_end ->
        let t = filled None (fun _ _ -> ()) and key = K.make 5 in
        at_the_end (fun () -> T.remove key t);
        usable what (fun () ->
            check (what ^ ": one less or not") (T.length t = size - if T.mem key t then 0 else 1);
            whole what (T.check_table t);
            T.close t));
    List.iter
      (fun has_hook ->
        each "table, full" (fun what at_the_end ->
            let gone = ref 0 in
            let t = T.create ~most:size ?evicted:(if has_hook then Some (fun _ _ -> incr gone) else None) () in
            for n = 1 to size do T.replace (K.make n) (V.make n) t done;
            let key = K.make 50 and v = V.make 1 in
            at_the_end (fun () -> T.replace key v t);
            usable what (fun () ->
                check (what ^ ": as many") (T.length t = size);
                if has_hook then check (what ^ ": handed on") (!gone = if T.mem key t then 1 else 0);
                whole what (T.check_table t);
                T.close t)))
      [ false; true ];
    each "table, filter" (fun what at_the_end ->
        let t = filled (Some size) (fun _ _ -> ()) in
        at_the_end (fun () -> T.filter (fun _ _ -> false) t);
        usable what (fun () -> whole what (T.check_table t); T.close t));
    each "map, remove" (fun what at_the_end ->
        let m = ref (M.create ()) in
        for n = 1 to 40 do m := M.add (K.make n) (V.make n) !m done;
        let key = K.make (1 + below 40) in
        at_the_end (fun () -> m := M.remove key !m);
        usable what (fun () ->
            match M.length !m with
            | n ->
                check (what ^ ": one less or not") (n = 40 - if M.mem key !m then 0 else 1);
                let number s = K.number (K.get s) in
                M.borrow !m (fun view -> ignore (Linear_maps.height number min_int max_int view));
                M.close !m
            | exception L.Moved -> collect ()));
    let even_and_odd () =
      let fill t n = M.add (K.make n) (V.make n) t in
      let all = List.init 60 Fun.id in
      let t = List.fold_left fill (M.create ()) all in
      (t, List.fold_left fill (M.create ()) (List.map (( * ) 3) all))
    in
    let sound t =
      M.borrow t (fun view ->
          let n = ref 0 in
          let number s = incr n; K.number (K.get s) in
          ignore (Linear_maps.height number min_int max_int view);
          check "its length" (!n = M.length t))
    in
    each "map, union" (fun what at_the_end ->
        let t, t' = even_and_odd () in
        let t = ref t in
        at_the_end (fun () -> t := M.union (fun _ a _ -> Some a) !t t');
        usable what (fun () ->
            match M.length !t with
            | n -> (
                sound !t;
                M.close !t;
                match M.length t' with
                | n' -> sound t'; check (what ^ ": all of them") (n + n' >= 100 && n + n' <= 120); M.close t'
                | exception L.Moved -> check (what ^ ": all of them") (n = 100))
            | exception L.Moved -> collect ()));
    each "map, split" (fun what at_the_end ->
        let t, t' = even_and_odd () and key = K.make 30 in
        let parts = ref None in
        M.close t';
        at_the_end (fun () -> parts := Some (M.split key t));
        usable what (fun () ->
            match (!parts, M.length t) with
            | _, n -> sound t; check (what ^ ": all of them") (n = 60); M.close t
            | exception L.Moved -> (
                match !parts with
                | Some (l, _, r) ->
                    sound l; sound r;
                    check (what ^ ": in parts") (M.length l = 30 && M.length r = 29);
                    M.close l; M.close r
                | None -> collect ())));
    each "queue, pop" (fun what at_the_end ->
        let q = Q.create () in
        for n = 1 to size do Q.push (V.make n) q done;
        at_the_end (fun () -> ignore (Q.pop q));
        usable what (fun () -> Q.push (V.make 1) q; Q.close q));
    each "list, uncons" (fun what at_the_end ->
        let l = N.of_list (List.init size V.make) in
        at_the_end (fun () -> ignore (N.uncons l));
        usable what (fun () -> match N.close l with () -> () | exception L.Moved -> collect ()))
end

module Ends_of_numbers = Ends (Linear_chains.Numbers) (Linear_chains.Numbers) ()
module Ends_of_texts = Ends (Linear_chains.Texts) (Linear_chains.Copied) ()
module Ends_of_copied = Ends (Linear_chains.Copied) (Linear_chains.Texts) ()

let depths () =
  if Sys.backend_type = Sys.Native && ocaml5 then
    Linear_endings.near_the_end_of_the_stack (fun deepest ->
        Ends_of_numbers.run deepest;
        Ends_of_texts.run deepest;
        Ends_of_copied.run deepest)

(* --- memory ------------------------------------------------------------------------------------------------------- *)

module Table = L.Table.Make (Ints_hashed) (Ints) ()

(* A table with few elements takes little. *)
let small_tables () =
  let before = Linear_contracts.resident () in
  let make n =
    let t = Table.create () in
    for k = 1 to 3 do Table.replace k n t done;
    t
  in
  let all = Array.init 10_000 make in
  let bytes = (Linear_contracts.resident () - before) / Array.length all in
  check (Printf.sprintf "a table of three elements: %d bytes" bytes) (bytes < 2048);
  Array.iteri (fun n t -> check "an element" (Table.find 2 t = Some n)) all;
  Array.iter Table.close all

(* Buckets are no cells: forgotten tables that have none do not pile up either. *)
let forgotten_tables () =
  let old = Array.make 200_000 (ref 0) in
  for i = 0 to Array.length old - 1 do old.(i) <- ref i done;
  Gc.full_major ();
  let before = Linear_contracts.resident () in
  for i = 1 to 30_000 do
    let t = Table.create () in
    Table.replace i i t
  done;
  for _ = 1 to if Sys.backend_type = Sys.Native then 8_000 else 400 do
    let t = Table.create () in
    for n = 1 to 2_100 do Table.replace n n t done;
    Table.clear t
  done;
  let tables = Linear_contracts.resident () in
  check (Printf.sprintf "forgotten tables: %d MB" ((tables - before) asr 20)) (tables - before < 180 lsl 20);
  for i = 1 to 2_000 do
    let t = Table.Sharded.create () in
    Table.Sharded.replace i i t
  done;
  let parts = Linear_contracts.resident () in
  check (Printf.sprintf "forgotten parts: %d MB" ((parts - before) asr 20)) (parts - before < 200 lsl 20);
  check "what is old" (Array.fold_left (fun n r -> n + !r) 0 old = 100_000 * 199_999);
  (* Those that are closed in order cost no cycles. *)
  collect ();
  let majors () = (Gc.quick_stat ()).major_collections in
  let cycles = majors () in
  for i = 1 to 30_000 do
    let t = Table.create () in
    Table.replace i i t;
    Table.close t
  done;
  check "no cycles" (majors () - cycles < 30);
  collect ();
  check "nothing is left" (Table.live () = 0)

(* The page that cells are taken from is one without cells in use, too. *)
let trimmed () =
  let module P = Lists.Make (Ints) () in
  let fill n = P.of_list (List.init n Fun.id) in
  List.iter
    (fun n ->
      let l = fill n in
      P.close l;
      check "there is a page" (P.memory () >= 1 lsl 21 && P.live () = 0);
      let given = P.trim () in
      (* With 4.14 [variant] is false with the variant, too. *)
      let much = given > 1 lsl 20 in
      check
        (Printf.sprintf "%d cells: %d bytes go back" n given)
        (if variant then much else given = 0 || (much && not ocaml5));
      check "once" (P.trim () = 0);
      whole "trimmed" (P.check ());
      let memory = P.memory () in
      let l = fill n in
      check "it is used again" (P.memory () = memory && P.length l = n && P.to_list l = List.init n Fun.id);
      let l' = fill 3 in
      P.close l;
      ignore (P.trim ());
      check "a page in use stays" (P.to_list l' = [ 0; 1; 2 ]);
      P.close l';
      whole "trimmed" (P.check ()))
    [ 1; 1000; 300_000 ]

let memory () =
  small_tables ();
  forgotten_tables ();
  trimmed ();
  check "pages of cells at the highest addresses" (high ())

(* --- cells -------------------------------------------------------------------------------------------------------- *)

type term = Nil | Pair of term * term | Three of int * int * int

module C = L.Cells.Make (struct type t = term let example = Three (1, 2, 3) end) ()

(* A token is used once, whatever becomes of its cell. *)
let tokens () =
  let a = C.make (Pair (Nil, Nil)) in
  let first = C.token (C.take a) in
  let a = C.put first (Pair (Nil, Nil)) in
  let second = C.token (C.take a) in
  raises "a token that was used, put" L.Moved (fun () -> C.put first (Pair (Nil, Nil)));
  raises "a token that was used, dropped" L.Moved (fun () -> C.drop first);
  C.drop second;
  let b = C.make (Pair (Nil, Nil)) in
  check "the same cell" (a == b);
  let third = C.token (C.take b) in
  List.iter
    (fun old ->
      raises "an old token" L.Moved (fun () -> C.put old (Pair (Nil, Nil)));
      raises "an old token" L.Moved (fun () -> C.drop old))
    [ first; second ];
  let b = C.put third (Pair (Nil, Nil)) in
  C.drop (C.token (C.take b));
  (* Each of many. *)
  let a = ref (C.make (Pair (Nil, Nil))) in
  for _ = 1 to 1000 do
    let t = C.token (C.take !a) in
    let b = C.put t (Pair (Nil, Nil)) in
    let t' = C.token (C.take b) in
    raises "the token before" L.Moved (fun () -> C.put t (Pair (Nil, Nil)));
    a := C.put t' (Pair (Nil, Nil))
  done;
  C.drop (C.token (C.take !a));
  check "nothing is left" (C.live () = 0);
  whole "cells" (C.check ());
  (* Of another process, read from a file: whatever number it is, near a cell or far from all. *)
  let a = C.make (Pair (Nil, Nil)) in
  let t = C.token (C.take a) in
  let foreign change = (Obj.magic (change (Obj.magic t : int)) : C.token) in
  let near = List.concat_map (fun n -> [ ( + ) n; ( - ) n ]) [ 1; 2; 3; 1 lsl 17; 1 lsl 18; 1 lsl 19; 1 lsl 40 ] in
  List.iter
    (fun change ->
      raises "a token of another process, put" L.Moved (fun () -> C.put (foreign change) (Pair (Nil, Nil)));
      raises "a token of another process, dropped" L.Moved (fun () -> C.drop (foreign change)))
    (List.map Fun.const [ 0; 1; -1; 4096; max_int; min_int; 0x7fff_ffff ] @ near);
  C.drop t;
  check "nothing is left" (C.live () = 0)

(* A cell whose taking an exception stops can be taken. *)
let taking_stopped () =
  let shapes = [ Pair (Nil, Nil); Three (opaque 1, 2, 3) ] in
  with_stops (fun () ->
      List.iter
        (fun shape ->
          let rec go place =
            let a = C.make shape in
            match stopping place (fun () -> C.take a) with
            | Some t -> C.drop (C.token t)
            | None ->
                (match C.take a with
                | t ->
                    check "its fields" (L.Cells.fields t = shape);
                    C.drop (C.token t)
                | exception L.Moved -> check "a cell can be taken after all" false);
                go (place + 1)
          in
          go 1)
        shapes;
      check "nothing is left" (C.live () = 0))

let cells () =
  tokens ();
  taking_stopped ()

(* --- asked while others write ------------------------------------------------------------------------------------- *)

let asked () =
  let over = Atomic.make false in
  let module P = Lists.Make (L.Text) () in
  let write () =
    let a = ref (C.make (Pair (Nil, Nil))) in
    for n = 1 to 300 do
      let l = P.of_list (words 50) in
      let t = Table.create () in
      Table.replace n n t;
      Table.close t;
      P.close l;
      let t = C.take !a in
      a := C.put (C.token t) (L.Cells.fields t)
    done;
    C.drop (C.token (C.take !a));
    Atomic.set over true
  in
  let join = Linear_domains.spawn write in
  let most = ref 0 in
  while not (Atomic.get over) do
    List.iter
      (fun n -> check "a number" (n >= 0); most := max n !most)
      [
        P.live (); P.memory (); P.trim (); L.Text.live (); L.Text.memory (); L.Text.trim (); Table.live ();
        Table.memory (); Table.trim (); C.live (); C.memory (); C.trim ();
      ];
    List.iter (whole "meanwhile") [ P.check (); L.Text.check (); Table.check (); C.check () ]
  done;
  join ();
  check "nothing is left" (P.live () + L.Text.live () + Table.live () + C.live () = 0)

(* --- regions ------------------------------------------------------------------------------------------------------ *)

module Any = L.Plain (struct type t = Obj.t end)
module A = Lists.Make (Any) ()

type ring = { mutable next : ring option; name : string }

(* Whatever a region that is held has may be in cells, and is there later. *)
let held () =
  let n = opaque 3 in
  let in_cells what root look =
    match root with
    | Error e -> check (what ^ ": " ^ R.error_to_string e) false
    | Ok root ->
        L.hold root;
        let l = A.cons (Obj.repr (R.get root)) (A.create ()) in
        collect ();
        Gc.compact ();
        check what (A.borrow l (fun view -> look (Obj.obj (List.hd view))));
        A.close l
  in
  in_cells "floats" (R.copy (Array.init 5 float)) (fun a -> a = [| 0.; 1.; 2.; 3.; 4. |]);
  in_cells "an int64" (R.copy (Int64.of_int n)) (fun i -> i = 3L);
  in_cells "a bigarray"
    (R.copy (Bigarray.Array1.init Bigarray.int Bigarray.c_layout 5 (fun i -> i * n)))
    (fun a -> Bigarray.Array1.get a 4 = 12);
  in_cells "a closure" (R.copy ~closures:true (fun x -> x + n)) (fun f -> f 4 = 7);
  let ring = { next = None; name = string_of_int n } in
  ring.next <- Some ring;
  in_cells "a ring" (R.copy ring) (fun r -> match r.next with Some r' -> r' == r && r.name = "3" | None -> false);
  L.hold (match R.copy 5 with Ok r -> r | Error _ -> failwith "an immediate");
  if variant && ocaml5 then
    in_cells "what is written to"
      (R.copy ~writes:`Track (ref [ string_of_int n ]))
      (fun r ->
        r := string_of_int (opaque 4) :: !r;
        collect ();
        Gc.compact ();
        !r = [ "4"; "3" ])

(* Of a region that was revoked nothing is read; others are not held in its place. *)
let revoked () =
  if variant && ocaml5 then begin
    let make i = match R.copy (Array.make 10 i) with Ok r -> r | Error e -> failwith (R.error_to_string e) in
    for i = 1 to 50 do
      let root = make i in
      L.hold root;
      let l = A.cons (Obj.repr (R.get root)) (A.create ()) in
      (match R.revoke (R.region root) with Ok () -> () | Error e -> check (R.error_to_string e) false);
      let l = A.rev (A.cons (Obj.repr i) l) in
      A.close l
    done;
    collect ();
    for i = 1 to 200 do
      let root = make i in
      refused "a value of a region that is not held" (fun () -> A.cons (Obj.repr (R.get root)) (A.create ()))
    done;
    collect ();
    check "nothing is left" (A.live () = 0)
  end

let regions () =
  held ();
  revoked ()
