(* SPDX-License-Identifier: MIT *)
(* The right to a list or map stays valid when a signal handler, or a sampler of allocations, raises in the middle of
   an operation. The program sends the signals itself: before the operation, or from a function that the operation
   calls. *)
open Linear_checks

(* A signal comes now; OCaml handles it when it next looks. *)
external signal : unit -> unit = "linear_test_signal" [@@noalloc]

let pending = ref false

let send () =
  pending := true;
  signal ()

(* A signal comes at the end of this call of a function of the program; 0: of none. *)
let calls_left = ref 0

let counted result =
  if !calls_left > 0 then begin
    decr calls_left;
    if !calls_left = 0 then send ()
  end;
  result

(* Calls a function, during which a signal comes at random: has its handler stopped it? *)
let by_signal f =
  calls_left := below 16;
  match
    if !calls_left = 0 then send ();
    f ();
    calls_left := 0;
    while !pending do ignore (opaque (ref 0)) done
  with
  | () -> false
  | exception Exit -> true

module Operations (X : Linear_chains.CONTENTS) () = struct
  module Key = struct
    include X

    let compare a b = counted (compare (X.number a) (X.number b))
  end

  module N = Lists.Make (X) ()
  module M = L.Map.Make (Key) (X) ()

  let size = 40
  let elements = List.init size X.make
  let any () = List.nth elements (below size)
  let list () = N.of_list (List.init 12 X.make)

  let map () =
    let t = ref (M.create ()) in
    List.iteri (fun n k -> if n land 1 = 0 then t := M.add k k !t) elements;
    !t

  (* Arguments of an operation are made here, outside the part that signals interrupt. *)
  let on_lists =
    let plainly f () = f in
    let with_an_element f () = f (any ()) in
    let with_another f () = f (N.of_list [ X.make 1; X.make 2 ]) in
    [
      ("cons", with_an_element N.cons); ("rev", plainly N.rev); ("map", plainly (N.map counted));
      ("uncons", plainly (fun l -> match N.uncons l with Some (_, rest) -> rest | None -> l));
      ("append", with_another (fun other l -> N.append l other)); ("append to", with_another N.append);
      ("rev_append", with_another (fun other l -> N.rev_append l other));
      ("filter", plainly (N.filter (fun v -> counted (X.number v land 1 = 0)))); ("sort", plainly (N.sort Key.compare));
      ("partition", plainly (fun l -> fst (N.partition (fun v -> counted (X.number v < 6)) l)));
    ]

  let on_maps =
    let with_a_key f () = f (any ()) in
    let with_another f () = f (map ()) in
    [
      ("add", with_a_key (fun k t -> M.add k k t)); ("remove", with_a_key M.remove);
      ("split", with_a_key (fun k t -> match M.split k t with t, _, _ -> t));
      ("union", with_another (fun other t -> M.union (fun _ a _ -> counted (Some a)) t other));
      ("union to", with_another (M.union (fun _ a b -> if X.number a land 4 = 0 then None else Some b)));
    ]

  let close_map t =
    M.borrow t (fun view -> ignore (Linear_maps.height (fun k -> X.number (X.get k)) min_int max_int view));
    M.close t

  let stops = ref 0

  (* [stopped f]: was [f ()] stopped? *)
  let tried stopped =
    let one create length close (name, prepare) =
      let c = ref (create ()) and operation = prepare () in
      if stopped (fun () -> c := operation !c) then incr stops;
      match length !c with
      | (_ : int) -> close !c
      | exception L.Moved -> check (name ^ ": the right is lost") false
    in
    List.iter (one list N.length N.close) on_lists;
    List.iter (one map M.length close_map) on_maps

  let run interrupts =
    while !stops < interrupts do tried by_signal done;
    with_stops (fun () -> for place = 1 to 60 do tried (fun f -> stopping place f = None) done);
    collect ();
    check "nothing is left" (N.live () + M.live () + L.Text.live () = 0)
end

module Numbers = Operations (Linear_chains.Numbers) ()
module Texts = Operations (Linear_chains.Texts) ()
module Copied = Operations (Linear_chains.Copied) ()

let rights () =
  if Sys.backend_type = Sys.Native then begin
    let handler _ = pending := false; raise Exit in
    let old = Sys.signal Sys.sigusr1 (Sys.Signal_handle handler) in
    Numbers.run 10_000;
    Texts.run 2_000;
    Copied.run 2_000;
    Sys.set_signal Sys.sigusr1 old
  end
