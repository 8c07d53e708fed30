(* SPDX-License-Identifier: MIT *)
(* Values of every kind that a region can hold, made at random; and what they are compared with. *)

type node = {
  name : string;
  mutable next : node option;
  floats : float array;
  single : float;
  pair : node * node list;
  rest : variant array;
}

and variant =
  | Constant
  | Int of int
  | Text of string
  | I32 of int32
  | I64 of int64
  | Native of nativeint
  | Nested of variant * variant
  | Node of node
  | Table of (int, variant) Hashtbl.t
  | Big of (float, Bigarray.float64_elt, Bigarray.c_layout) Bigarray.Array1.t
  | Lazily of variant Lazy.t
  | Empty of int array
  | Raised of exn
  | Reference of variant ref

exception Own of int

let static_text = Text "a static constant"
let static_nested = Nested (static_text, Nested (Int 3, Constant))

(* [seen]: nodes made before, which are shared, and lead to cycles *)
let rec variant depth seen =
  let leaf = depth <= 0 in
  match Random.int (if leaf then 9 else 17) with
  | 0 -> Constant
  | 1 -> Int (Random.bits () - 0x20000000)
  | 2 -> Text (String.init (Random.int 40) (fun _ -> Char.chr (Random.int 256)))
  | 3 -> I32 (Random.int32 Int32.max_int)
  | 4 -> I64 (Random.int64 Int64.max_int)
  | 5 -> Native (Random.nativeint Nativeint.max_int)
  | 6 -> static_text
  | 7 -> Empty [||]
  | 8 -> static_nested
  | 9 -> Nested (variant (depth - 1) seen, variant (depth - 1) seen)
  | 10 | 11 -> Node (node (depth - 1) seen)
  | 12 ->
      let t = Hashtbl.create 7 in
      for i = 1 to Random.int 20 do
        Hashtbl.replace t i (variant (depth - 2) seen)
      done;
      Table t
  | 13 ->
      let b = Bigarray.(Array1.create float64 c_layout (Random.int 30)) in
      Bigarray.Array1.fill b (Random.float 1e9);
      Big b
  | 14 ->
      let l = lazy (variant (depth - 1) seen) in
      ignore (Lazy.force l);
      Lazily l
  | 15 when Sys.backend_type = Native ->
      Raised (if Random.bool () then Not_found else Failure (string_of_int (Random.bits ())))
  | _ -> Reference (ref (variant (depth - 1) seen))

and node depth seen =
  match !seen with
  | n :: _ when Random.int 3 = 0 -> List.nth (n :: !seen) (Random.int (1 + List.length !seen))
  | _ ->
      let rec n =
        {
          name = string_of_int (Random.bits ());
          next = None;
          floats = Array.init (Random.int 5) float;
          single = Random.float 1.;
          pair = (n, []);
          rest = [||];
        }
      in
      seen := n :: !seen;
      let other = node (depth - 1) (if depth <= 0 then seen else ref !seen) in
      let rest = Array.init (Random.int 6) (fun _ -> variant (depth - 1) seen) in
      let m = { n with pair = (other, [ n; other ]); rest } in
      n.next <- Some m;
      m

let make seed =
  Random.init seed;
  let seen = ref [] in
  Array.init (1 + Random.int 12) (fun _ -> variant (1 + Random.int 8) seen)

external address : Obj.t -> int = "region_test_address" [@@noalloc]

let special tag = tag = Obj.forward_tag || tag = Obj.lazy_tag || tag = Obj.double_tag || tag = 244

(* A forced lazy value, in whose stead its result may stand. *)
let rec through v =
  if Obj.is_block v && Obj.tag v = Obj.forward_tag then
    let f = Obj.field v 0 in
    if Obj.is_block f && special (Obj.tag f) then v else through f
  else v

(* Is the second a copy of the first, block by block, with the same sharing? Extension constructors are the same.
   `exact`: distinct blocks stay distinct. *)
let same ?(exact = true) a b =
  Gc.minor ();
  (* from here on no block of the first moves *)
  let forth = Hashtbl.create 100 and back = Hashtbl.create 100 in
  let pending = Stack.create () in
  let wrong = ref None in
  let fail what = if !wrong = None then wrong := Some what in
  let visit a b =
    let a = through a and b = through b in
    if Obj.is_int a || Obj.is_int b then (if a != b then fail "immediates")
    else
      let x = address a and y = address b in
      match Hashtbl.find_opt back y with
      | Some z -> if exact && z <> x then fail "merged"
      | None ->
          if exact && Hashtbl.mem forth x then fail "split";
          Hashtbl.replace forth x y;
          Hashtbl.replace back y x;
          Stack.push (a, b) pending
  in
  visit a b;
  while (not (Stack.is_empty pending)) && !wrong = None do
    let a, b = Stack.pop pending in
    let t = Obj.tag a in
    if Obj.tag b <> t || Obj.size a <> Obj.size b then fail "headers"
    else if t = Obj.object_tag then (if a != b then fail "extension constructors")
    else if t = Obj.custom_tag then (if compare a b <> 0 then fail "custom blocks")
    else if t = Obj.string_tag then (if (Obj.obj a : string) <> Obj.obj b then fail "strings")
    else if t = Obj.double_tag then (if compare (Obj.obj a : float) (Obj.obj b) <> 0 then fail "floats")
    else if t = Obj.double_array_tag then (
      if compare (Obj.obj a : float array) (Obj.obj b) <> 0 then fail "arrays of floats")
    else
      for i = 0 to Obj.size a - 1 do
        visit (Obj.field a i) (Obj.field b i)
      done
  done;
  !wrong
