(* SPDX-License-Identifier: MIT *)
(* What happens between players; collections; a step. *)

open Values
open Model_player
open Model_roots

type parcel = { root : Root.t; k : kind; i : int; a : int }

let lock = Mutex.create ()

let locked f =
  Mutex.lock lock;
  let x = f () in
  Mutex.unlock lock;
  x

let mailbox : parcel option array = Array.make 64 None
let legacy : parcel list ref = ref []

let parcel p i = { root = p.roots.(i); k = p.kind.(i); i = p.id.(i); a = p.aux.(i) }
let unpack p { root; k; i; a } = push p root k i a

let exchange p =
  let slot = random p 64 in
  let out =
    if p.n > 0 && not (one_in p 3) then begin
      let i = random p p.n in
      let x = parcel p i in
      forget p i;
      Some x
    end
    else None
  in
  let got =
    locked (fun () ->
        let got = mailbox.(slot) in
        mailbox.(slot) <- out;
        got)
  in
  match got with
  | None -> ()
  | Some x ->
      if p.n = room then delete p 0;
      unpack p x;
      let i = p.n - 1 in
      check p i;
      (match random p 4 with 0 -> delete p i | _ -> ())

let bequeath p =
  let all = List.init p.n (parcel p) in
  p.n <- 0;
  locked (fun () -> legacy := List.rev_append all !legacy)

let inherit_some p limit =
  for _ = 1 to limit do
    match
      locked (fun () ->
          match !legacy with
          | [] -> None
          | x :: rest ->
              legacy := rest;
              Some x)
    with
    | Some x when p.n < room ->
        unpack p x;
        check p (p.n - 1)
    | Some x -> locked (fun () -> legacy := x :: !legacy)
    | None -> ()
  done

let alone () = !domains = 1 && !threads = 1

let burst p =
  let keep = ref [] in
  for i = 0 to random p 4000 do
    let s = opaque (Bytes.create (8 + random p 200)) in
    if i land 15 = 0 then keep := s :: !keep
  done;
  ignore (opaque !keep)

let minor_sizes = [| 1024; 4096; 8192; 32768 |]
let resize_minor p = Gc.set { (Gc.get ()) with minor_heap_size = minor_sizes.(random p 4);
                              space_overhead = 40 + random p 160 }

let thoroughly p f =
  f ();
  if p.n < 100 || one_in p 4 then check_all p

(* Teardown, and a new life; only where nobody else is. *)
let restart p =
  if !restarts && alone () && not (Root.is_rival ()) then begin
    Array.iteri
      (fun i x ->
        Option.iter (fun x -> if p.n = room then delete p 0; unpack p x) x;
        mailbox.(i) <- None)
      mailbox;
    while p.n > 0 do delete p (p.n - 1) done;
    let tries = ref 0 in
    while
      let r, _ = born () in
      if r <> Root.none then Root.delete r;
      r <> Root.none || customs_alive () > 0
    do
      incr tries;
      if !tries > 10_000 then
        complain p (Printf.sprintf "%d custom blocks are never collected although no root is left" (customs_alive ()));
      Gc.full_major ()
    done;
    Root.delete_elsewhere_done ();
    let r = Array.init (random p 100) (fun i -> Root.create_or_fail (string_of_int i)) in
    if one_in p 2 then Gc.minor ();
    if one_in p 2 then ignore (Gc.major_slice 100);
    Array.iteri (fun i r -> if i land 1 = 0 then Root.delete r) r;
    Root.teardown ();
    if Root.status () <> Root.tore_down then complain p "the status after boxroot_teardown is wrong";
    if Root.create 1 <> Root.none then complain p "boxroot_create succeeded after boxroot_teardown";
    if not (Root.is_checked ()) then Array.iteri (fun i r -> if i land 1 = 1 then Root.delete r) r;
    if one_in p 2 then Gc.full_major ();
    if not (Root.setup ()) then complain p "boxroot_setup failed after boxroot_teardown"
  end

let operations =
  [| (120, "create", create); (90, "delete", delete_some); (30, "modify", modify); (12, "modify often", modify_often);
     (25, "bump", bump);
     (15, "exchange values", exchange_values); (15, "duplicate", duplicate); (6, "reference", keep_reference);
     (6, "batch", batch);
     (4, "storm", storms); (8, "born", collect_born); (40, "exchange", exchange); (10, "burst", burst);
     (10, "minor", fun p -> thoroughly p Gc.minor);
     (16, "slice", fun p -> thoroughly p (fun () -> ignore (Gc.major_slice (random p 5000))));
     (2, "major", fun p -> thoroughly p Gc.major); (2, "full major", fun p -> thoroughly p Gc.full_major);
     (1, "compact", fun p -> if one_in p 3 then thoroughly p Root.compact);
     (1, "resize", fun p -> if one_in p 4 then resize_minor p);
     (8, "nap", fun p -> Root.nap (if one_in p 4 then random p 50 else 0)); (4, "inherit", fun p -> inherit_some p 20);
     (1, "restart", fun p -> if one_in p 2 then restart p) |]

let total_weight = Array.fold_left (fun s (w, _, _) -> s + w) 0 operations

let operation p =
  if p.n < p.target && one_in p 2 then (0, "create", create)
  else if p.n > p.target && not (one_in p 3) then (0, "delete", delete_some)
  else begin
    let x = ref (random p total_weight) and found = ref operations.(0) in
    (try
       Array.iter
         (fun ((w, _, _) as op) ->
           if !x < w then (
             found := op;
             raise Exit);
           x := !x - w)
         operations
     with Exit -> ());
    !found
  end

let targets = [| 0; 3; 20; 60; 200; 800 |]

let play p count =
  for _ = 1 to count do
    p.step <- p.step + 1;
    if one_in p 300 then p.target <- targets.(random p (Array.length targets));
    let _, name, f = operation p in
    p.doing <- name;
    if !trace then Printf.eprintf "%s %d %s (%d roots)\n%!" p.label p.step name p.n;
    f p;
    check_some p;
    if p.step mod !full_every = 0 then check_all p
  done;
  p.doing <- "end";
  check_all p
