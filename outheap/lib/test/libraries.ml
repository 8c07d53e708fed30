(* SPDX-License-Identifier: MIT *)
(* What a program may expect of the libraries, with whichever runtime it is linked. *)

module R = Outheap_region
module H = Outheap_hashcons

exception Failed of string

let require what holds = if not holds then raise (Failed what)
let get_ok = function Ok x -> x | Error e -> raise (Failed (R.error_to_string e))

module Words = Map.Make (String)

let words n =
  List.fold_left (fun m i -> Words.add (string_of_int i) (float_of_int i, [ i ]) m) Words.empty (List.init n Fun.id)

let same a b = Words.equal ( = ) a b

(* --- outheap --- *)

let heap () =
  require "an integer is immediate" (Outheap.classify (Obj.repr 1) = Outheap.Immediate);
  let expected = if Outheap.available then Outheap.Young else Outheap.Unknown in
  require "a fresh block is young, or nothing is known" (Outheap.classify (Obj.repr (ref 1)) = expected);
  let s = Outheap.statistics () in
  require "statistics are zero with the stock runtime" (Outheap.available = (s.committed > 0));
  ignore (Outheap.trim ());
  let before = Outheap.set_opaque true in
  require "it says what was set, and the stock runtime knows nothing of it"
    (Outheap.set_opaque before = Outheap.available && Outheap.set_opaque before = before)

(* --- regions --- *)

let copies () =
  let source = words 20_000 in
  let root = get_ok (R.copy source) in
  Gc.full_major ();
  require "a copy is equal to its source" (same (R.get root) source);
  let v = Obj.repr (R.get root) in
  require "a copy lies in its region" (R.is_in_region v && R.contains (R.region root) v);
  require "its source does not" (not (R.is_in_region (Obj.repr source)));
  let equal = List.init 1_000 (fun _ -> String.make 20 'x') in
  let kept = get_ok (R.copy equal) and shared = get_ok (R.copy ~sharing:`Max equal) in
  let blocks root = (R.info (R.region root)).blocks in
  require "maximal sharing merges equal blocks" (R.get shared = equal && 2 * blocks shared - 1 <= blocks kept + 1);
  match R.copy (ref (fun x -> x + List.length equal)) with
  | Error (R.Refused { kind = "closure"; path = ".0"; _ }) -> ()
  | _ -> raise (Failed "a closure is refused, with its path")

let images () =
  let schema = R.schema ~name:"words" ~version:1 and other = R.schema ~name:"words" ~version:2 in
  let source = words 5_000 in
  let path = Filename.temp_file "outheap" ".image" in
  Fun.protect ~finally:(fun () -> Sys.remove path) @@ fun () ->
  get_ok (R.save schema ~path source);
  let root = get_ok (R.map schema ~path ~verify:`Full ()) in
  require "an image holds what was saved" (same (R.get root) source);
  match R.map other ~path () with
  | Error (R.Other_schema { version = 1; wanted_version = 2; _ }) -> ()
  | _ -> raise (Failed "an image of another version is refused")

let ends () =
  let root = get_ok (R.copy (words 10)) in
  match R.delete (R.region root) with
  | Ok () ->
      require "a region is deleted where that can be known" R.can_delete;
      require "what was deleted cannot be read" (match R.get root with _ -> false | exception R.Deleted -> true)
  | Error (R.Unsupported _) ->
      require "with the stock runtime a region lives until exit" (not R.can_delete && same (R.get root) (words 10))
  | Error e -> raise (Failed (R.error_to_string e))

let ancient () =
  let a = Ancient.mark (words 100) in
  let v = Ancient.follow a in
  require "a marked value can be followed" (same v (words 100) && Ancient.is_ancient v);
  Ancient.delete a;
  let path = Filename.temp_file "outheap" ".ancient" in
  Fun.protect ~finally:(fun () -> Sys.remove path) @@ fun () ->
  let md = Ancient.attach (Unix.openfile path [ Unix.O_RDWR ] 0o600) 0n in
  let shared, small = Ancient.share_info md 1 (String.make 100 'x') in
  let _, large = Ancient.share_info md 2 (String.make 1000 'x') in
  require "sizes of what is shared are in bytes" (small.i_size >= 112 && large.i_size - small.i_size = 904);
  require "it can be followed, and got" (Ancient.follow shared = Ancient.follow (Ancient.get md 1));
  Ancient.detach md

(* --- hash-consing --- *)

type term = node H.hash_consed
and node = Variable of string | Apply of term * term

module Terms = H.Make (struct
  type t = node

  let equal a b =
    match (a, b) with
    | Variable x, Variable y -> x = y
    | Apply (f, x), Apply (g, y) -> f == g && x == y
    | Variable _, Apply _ | Apply _, Variable _ -> false

  let hash = function Variable x -> Hashtbl.hash x | Apply (f, x) -> (f.H.tag * 65599) + x.H.tag
end)

let terms () =
  let table = Terms.create 100 in
  let variable i = Terms.hashcons table (Variable (Printf.sprintf "x%d" (i mod 50))) in
  let rec term seed depth =
    if depth = 0 then variable seed
    else Terms.hashcons table (Apply (term (seed * 7 mod 10_007) (depth - 1), term (seed + depth) (depth - 1)))
  in
  let first = Array.init 200 (fun i -> term i 6) in
  H.collect ();
  Array.iteri (fun i t -> require "equal terms are one" (term i 6 == t)) first;
  require "other terms are others" (term 1 5 != term 1 6);
  require "cells are off the heap, or in it" (H.is_cell (Obj.repr first.(0)) = H.off_heap)

(* --- owned data --- *)

module O = Outheap_linear

module Ages =
  O.Map.Make
    (struct
      include O.Rooted (String) ()

      let compare = String.compare
    end)
    (O.Plain (Int))
    ()

let owned () =
  let all = List.init 100 string_of_int in
  let t = List.fold_left (fun t w -> Ages.add w (String.length w) t) (Ages.create ()) all in
  Gc.full_major ();
  require "what was added is found" (List.for_all (fun w -> Ages.find w t = Some (String.length w)) all);
  let old = t in
  let t = Ages.remove "7" t in
  require "an owner is consumed" (match Ages.length old with _ -> false | exception O.Moved -> true);
  Ages.close t;
  require "nothing is left" (Ages.live () = 0)

(* --- one with the other --- *)

module Lists = O.List.Make (O.Plain (Int)) ()

(* What is borrowed is copied by those that keep it. *)
let kept () =
  let table = H.create 10 in
  let borrowed f =
    let l = Lists.of_list [ 1; 2; 3 ] in
    Fun.protect ~finally:(fun () -> Lists.close l) (fun () -> Lists.borrow l f)
  in
  let copy = borrowed (fun l -> get_ok (R.copy l)) in
  let consed = if H.off_heap then borrowed (H.hashcons table) else H.hashcons table [ 1; 2; 3 ] in
  let inside = if H.off_heap then Some (borrowed (fun l -> H.hashcons (H.create 10) (Some l))) else None in
  let others = Lists.of_list [ 7; 8; 9 ] in
  require "a copy of a borrowed list" (R.get copy = [ 1; 2; 3 ]);
  require "a node that was borrowed" (consed.node = [ 1; 2; 3 ] && H.hashcons table [ 1; 2; 3 ] == consed);
  require "a node with a borrowed list" (match inside with Some h -> h.node = Some [ 1; 2; 3 ] | None -> true);
  Lists.close others

let () =
  List.iter (fun test -> test ()) [ heap; copies; images; ends; ancient; terms; owned; kept ];
  Printf.printf "outheap: ok (%s)\n" (if Outheap.available then "variant" else "stock")
