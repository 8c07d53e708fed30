(* SPDX-License-Identifier: MIT *)
(* Cells of a program's own types, and signals in the middle. *)
open Linear_checks
open Linear_contracts

type term = Nil | Leaf of int | Pair of term * term | Three of int * term * int

module Term = struct
  type t = term

  let example = Three (1, Nil, 2)
end

module C = L.Cells.Make (Term) ()
module D = L.Cells.Make (Term) ()

(* Types whose constructors could take each other's place in a cell, and such as look like them. *)
let kinds_of_types () =
  let module Of (T : L.Cells.TYPE) = struct
    let make () =
      let module M = L.Cells.Make (T) () in
      M.live ()
  end in
  let n = opaque 5 in
  let word = String.make n 'a' in
  let module Variant = Of (struct type t = [ `Number of int | `Word of string ] let example = `Word word end) in
  refused "a polymorphic variant" Variant.make;
  let module Constant = Of (struct type t = [ `Number of int | `None ] let example = `None end) in
  refused "a constant one" Constant.make;
  let module Boxed = struct type t = Boxed of [ `Number of int | `Word of string ] [@@unboxed] end in
  let module Unboxed = Of (struct type t = Boxed.t let example = Boxed.Boxed (`Number max_int) end) in
  refused "one in a constructor that is not there" Unboxed.make;
  let module Late = Of (struct type t = [ `Number of int ] Lazy.t let example = lazy (`Number n) end) in
  refused "one that is computed later" Late.make;
  let module Exception = Of (struct type t = exn let example = Failure word end) in
  refused "an exception" Exception.make;
  let module Wide = Of (struct type t = exn let example = Unix.Unix_error (Unix.EINTR, word, word) end) in
  refused "an exception of several arguments" Wide.make;
  let module First = Of (struct type t = int * string let example = (1 lsl 30 - 1, word) end) in
  refused "a pair whose number could be a hash" First.make;
  let module Least = Of (struct type t = int * string let example = (-1 lsl 30, word) end) in
  refused "one with the least hash" Least.make;
  let good what make = check (what ^ " is accepted") (make () = 0) in
  let module Large = Of (struct type t = int * string let example = (1 lsl 30, word) end) in
  good "a pair whose number is no hash" Large.make;
  let module Small = Of (struct type t = int * string let example = (-1 lsl 30 - 1, word) end) in
  good "one with a small number" Small.make;
  let module Pairs = Of (struct type t = string * int let example = (word, 1) end) in
  good "a pair that begins with a block" Pairs.make;
  let module Second = Of (struct type t = (int, int * string) Either.t let example = Either.Right (1, word) end) in
  good "a second constructor" Second.make;
  let module Triple = Of (struct type t = int * int * int let example = (n, n, n) end) in
  good "three fields" Triple.make

let cells () =
  let n = opaque 5 in
  let a = C.make (Leaf n) in
  let b = C.make (Pair (a, Nil)) in
  Gc.compact ();
  check "a cell" (b = Pair (Leaf 5, Nil) && C.live () = 2);
  let t = C.take b in
  raises "taken twice" L.Moved (fun () -> C.take b);
  raises "a cell that was taken, in a new one" L.Moved (fun () -> C.make (Pair (b, Nil)));
  check "fields" (L.Cells.fields t = Pair (Leaf 5, Nil));
  refused "a field of the heap" (fun () -> C.put (C.token t) (Pair (Leaf n, Nil)));
  refused "another constructor" (fun () -> C.put (C.token t) (Three (1, Nil, 2)));
  refused "another constructor with fewer fields" (fun () -> C.put (C.token t) (Leaf 1));
  refused "no block" (fun () -> C.put (C.token t) Nil);
  let b' = C.put (C.token t) (Pair (Nil, a)) in
  check "fields, once more" (L.Cells.fields t = Pair (Leaf 5, Nil));
  check "the same cell" (b == b' && opaque b' = Pair (Nil, Leaf 5));
  raises "a token used twice" L.Moved (fun () -> C.put (C.token t) (Leaf 1));
  raises "a token used and dropped" L.Moved (fun () -> C.drop (C.token t));
  let t = C.take b' in
  C.drop (C.token t);
  raises "dropped twice" L.Moved (fun () -> C.drop (C.token t));
  check "one is left" (C.live () = 1);
  (match C.take b' with
  | _ -> check "a free cell" false
  | exception (L.Moved | Invalid_argument _) -> ());
  (* What is no cell of this pool. *)
  let other = D.make (Three (1, Nil, 2)) in
  List.iter
    (fun (what, v) -> refused what (fun () -> C.take v))
    [
      ("a constant constructor", Nil); ("a block of the heap", Leaf n); ("a constant", opaque (Pair (Nil, Nil)));
      ("a cell of another pool", other); ("inside a cell", beside a 8); ("before a cell", beside a (-8));
      ("behind the cells", beside a (1 lsl 20)); ("the beginning of the page", beside a (8 - (Obj.magic a : int)));
    ];
  refused "a field that is a cell of another pool" (fun () -> C.make (Pair (other, Nil)));
  refused "a string" (fun () -> C.make (Obj.magic (String.make 3 'a')));
  refused "a closure" (fun () -> C.make (Obj.magic (fun x -> x + n)));
  refused "a float" (fun () -> C.make (Obj.magic (float n)));
  refused "an empty array" (fun () -> C.make (Obj.magic [||]));
  refused "too many fields" (fun () -> C.make (Obj.magic (Array.make 63 n)));
  C.drop (C.token (C.take a));
  D.drop (D.token (D.take other));
  check "nothing is left" (C.live () = 0 && D.live () = 0);
  whole "cells" (C.check ());
  (* An algorithm on them: the mirror image of a tree, in place. *)
  let rec tree d =
    if d = 0 then C.make (Leaf (below 100))
    else
      let l = tree (d - 1) in
      C.make (Pair (l, tree (d - 1)))
  in
  let rec copy = function Pair (l, r) -> Pair (copy l, copy r) | Leaf n -> Leaf n | t -> t in
  let rec mirrored = function Pair (l, r) -> let r = mirrored r in Pair (r, mirrored l) | t -> t in
  let rec mirror t =
    let c = C.take t in
    match L.Cells.fields c with
    | Pair (l, r) ->
        let r = mirror r in
        C.put (C.token c) (Pair (r, mirror l))
    | fields -> C.put (C.token c) fields
  in
  let t = tree 10 in
  let before = copy t and live = C.live () in
  let t = mirror t in
  check "mirror" (t = mirrored before);
  check "in place" (C.live () = live);
  let rec drop t =
    match t with
    | Nil -> ()
    | _ ->
        let c = C.take t in
        (match L.Cells.fields c with Pair (l, r) -> drop l; drop r | _ -> ());
        C.drop (C.token c)
  in
  drop t;
  check "nothing is left" (C.live () = 0);
  kinds_of_types ()

(* What the runtime does with what is borrowed. *)
let values () =
  let l = list 100 in
  N.borrow l (fun view ->
      let copy = List.init 100 Fun.id in
      check "equality" (view = copy && compare view copy = 0);
      check "hash" (Hashtbl.hash view = Hashtbl.hash copy);
      check "marshalling" (Marshal.to_string view [] = Marshal.to_string copy []);
      check "size" (Obj.size (Obj.repr view) = 2 && Obj.tag (Obj.repr view) = 0);
      let held = Some view in
      Gc.compact ();
      check "in blocks of the heap" (held = Some copy));
  (* A container is none of these. *)
  refused "marshalling a list" (fun () -> ignore (Marshal.to_string l []));
  check "copying a list" (match Outheap_region.copy l with Error (Outheap_region.Refused _) -> true | _ -> false);
  check "copying in closures"
    (match Outheap_region.copy ~closures:true (fun () -> N.length l) with Ok _ -> false | Error _ -> true);
  N.close l

(* Signal handlers that raise: maps and lists stay whole, or are consumed. *)
let interrupts () =
  let armed = ref false in
  let handle _ =
    if !armed then begin
      armed := false;
      raise Stop
    end
  in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handle);
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.0003; it_value = 0.0003 });
  let t = ref (T.create ()) and l = ref (N.create ()) and stopped = ref 0 in
  while !stopped < 500 do
    try
      armed := true;
      for _ = 1 to 50 do
        let k = below 1000 in
        if below 2 = 0 then t := T.add k k !t else t := T.remove k !t;
        (match below 6 with
        | 0 | 1 | 2 -> l := N.cons k !l
        | 3 -> l := N.rev !l
        | 4 -> l := N.sort compare !l
        | _ -> if N.length !l > 300 then l := N.filter (fun n -> n land 1 = 0) !l)
      done;
      armed := false
    with Stop ->
      (* The change may have been made, and its result not yet assigned. *)
      incr stopped;
      (match T.length !t with _ -> () | exception L.Moved -> t := T.create ());
      (match N.length !l with _ -> () | exception L.Moved -> l := N.create ())
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  T.borrow !t (fun view -> ignore (Linear_maps.height Fun.id min_int max_int view));
  check "list" (N.borrow !l List.length = N.length !l);
  let t' = !t and l' = !l in
  collect ();
  check "cells" (T.live () = T.length t' && N.live () = N.length l');
  whole "interrupts" (T.check ())
