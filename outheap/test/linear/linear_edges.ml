(* SPDX-License-Identifier: MIT *)
(* Memory that is not cells, tokens, what is asked while others write, and regions. *)
open Linear_checks
module R = Outheap_region

external high : unit -> bool = "linear_test_high" [@@noalloc]

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

(* Several domains forget tables faster than one collects them. *)
let forgotten_by_several () =
  let before = Linear_contracts.resident () in
  let forget () =
    for i = 1 to 10_000 do
      let t = Table.create () in
      for n = 1 to 3 do Table.replace n i t done
    done
  in
  List.iter (fun join -> join ()) (List.init 3 (fun _ -> Linear_domains.spawn forget));
  let bytes = Linear_contracts.resident () - before in
  check (Printf.sprintf "forgotten by several: %d MB" (bytes asr 20)) (bytes < 80 lsl 20);
  collect ();
  check "nothing is left" (Table.live () = 0)

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
  forgotten_by_several ();
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
      let l = P.of_list (Linear_signals.words 50) in
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
