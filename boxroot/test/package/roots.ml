(* SPDX-License-Identifier: MIT *)
(* Roots beside a model in the heap: two domains create, modify, read and delete roots at random, while minor and major
   collections run; then each deletes the other's. Nothing but its root keeps a value alive, and no value is kept
   without one. *)

external create : int list -> nativeint = "roots_create"
external get : nativeint -> int list = "roots_get"
external modify : nativeint -> int list -> nativeint = "roots_modify"
external delete : nativeint -> unit = "roots_delete"

let slots = 20_000
let steps = 300_000

exception Failed of string

let fail text = raise (Failed text)
let require what holds = if not holds then fail what

(* A young value that nothing in the heap refers to. *)
let fresh n = Sys.opaque_identity [ n; n + 1 ]

let holds root n = match get root with [ a; b ] -> a = n && b = n + 1 | _ -> false

(* The root of each slot, and what it holds. *)
type player = { roots : nativeint option array; numbers : int array }

let player () = { roots = Array.make slots None; numbers = Array.make slots 0 }

let step random p =
  let i = Random.State.int random slots and n = Random.State.bits random in
  match p.roots.(i) with
  | None ->
      p.roots.(i) <- Some (create (fresh n));
      p.numbers.(i) <- n
  | Some root ->
      require "a root holds what was stored in it" (holds root p.numbers.(i));
      if n land 3 = 0 then (
        delete root;
        p.roots.(i) <- None)
      else (
        p.roots.(i) <- Some (modify root (fresh n));
        p.numbers.(i) <- n)

let play seed p () =
  let random = Random.State.make [| seed |] in
  for i = 1 to steps do
    step random p;
    if i mod 5_000 = 0 then Gc.minor ();
    if i mod 100_000 = 0 then Gc.full_major ()
  done

let check_all p () =
  Array.iteri
    (fun i root -> match root with Some r -> require "roots survive collections" (holds r p.numbers.(i)) | None -> ())
    p.roots

let delete_all p () = Array.iter (Option.iter delete) p.roots

(* A value is alive while it has a root, and no longer. *)
let lifetime () =
  let weak = Weak.create 1 in
  let[@inline never] make () =
    let v = fresh 7 in
    Weak.set weak 0 (Some v);
    create v
  in
  let root = make () in
  Gc.full_major ();
  require "a root keeps its value alive" (Weak.check weak 0 && holds root 7);
  delete root;
  Gc.full_major ();
  require "a deleted root keeps nothing alive" (not (Weak.check weak 0))

let reports () =
  let file = Filename.temp_file "report" "" in
  require "creations are sampled" (Boxroot.sample 1 = Ok ());
  Gc.full_major ();
  let roots = Array.init 50 (fun i -> create (fresh i)) in
  require "a report is made" (Boxroot.report ~file () = Ok ());
  let channel = open_in_bin file in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  Sys.remove file;
  require "it counts the roots"
    (List.exists (String.starts_with ~prefix:"boxroot: 50 live roots") (String.split_on_char '\n' text));
  require "sampling ends" (Boxroot.sample 0 = Ok ());
  require "errors are told" (Result.is_error (Boxroot.report ~file:"/nowhere/report" ()));
  require "and of numbers" (Result.is_error (Boxroot.sample (-1)));
  Array.iter delete roots

let () =
  let a = player () and b = player () in
  Domains.at_once [ play 1 a; play 2 b ];
  Gc.full_major ();
  Domains.at_once [ check_all b; check_all a ];
  Domains.at_once [ delete_all b; delete_all a ];
  Gc.full_major ();
  lifetime ();
  reports ();
  require "the library runs" (Boxroot.status () = Boxroot.Running);
  print_endline "boxroot: ok"
