(* SPDX-License-Identifier: MIT *)
(* Values of every kind. A value is made from its kind and a number, and whether a value is the one made from a kind and
   a number can be told from its content alone: so the model needs to keep nothing alive. *)

external custom : int -> bool -> Root.t -> bool -> Obj.t = "m_custom"
external custom_cell : Obj.t -> int = "m_custom_cell" [@@noalloc]
external custom_owned : Obj.t -> Root.t = "m_custom_owned" [@@noalloc]
external custom_is : Obj.t -> int -> int -> bool = "m_custom_is" [@@noalloc]
external hold : int -> int -> unit = "m_hold" [@@noalloc]
external customs_alive : unit -> int = "m_customs_alive" [@@noalloc]
external abstract : int -> int -> Obj.t = "m_abstract"
external abstract_is : Obj.t -> int -> int -> bool = "m_abstract_is" [@@noalloc]

type kind =
  | Immediate | Small | Text | Long_text | Large | Large_of_blocks | Static | Static_c | Closure | Infix | Lazy_value
  | Lazy_forced | Lazy_float
  | Continuation | Abstract | Large_abstract | Custom | Large_custom | Owner | Begetter | Float | Float_array | Int64
  | Bigarray | Object
  | Exception | Local_exception | List | Tree | Cycle | Table | Ephemeron | Weak | Mutable

let names =
  [| (Immediate, "immediate"); (Small, "small"); (Text, "text"); (Long_text, "long text"); (Large, "large");
     (Large_of_blocks, "large of blocks");
     (Static, "static"); (Static_c, "static of C"); (Closure, "closure"); (Infix, "infix"); (Lazy_value, "lazy");
     (Lazy_forced, "forced lazy");
     (Lazy_float, "forced lazy float"); (Continuation, "continuation"); (Abstract, "abstract");
     (Large_abstract, "large abstract");
     (Custom, "custom"); (Large_custom, "large custom"); (Owner, "owner of a root"); (Begetter, "begetter of a root");
     (Float, "float");
     (Float_array, "float array"); (Int64, "int64"); (Bigarray, "bigarray"); (Object, "object");
     (Exception, "exception");
     (Local_exception, "local exception"); (List, "list"); (Tree, "tree"); (Cycle, "cycle"); (Table, "table");
     (Ephemeron, "ephemeron");
     (Weak, "weak"); (Mutable, "mutable") |]

let kinds = Array.map fst names
let name k = snd (List.find (fun (k', _) -> k = k') (Array.to_list names))

(* Kinds whose blocks change or are used up: no second root may hold the same one. *)
let sole = function Mutable | Continuation -> true | _ -> false

(* Kinds with a cell of C: `aux` is its address. *)
let has_cell = function Custom | Large_custom | Owner | Begetter -> true | _ -> false

exception Boom of int * string

type tree = Leaf of int | Node of tree * string * tree
type cycle = { number : int; mutable next : cycle; text : string }

let opaque = Sys.opaque_identity

let rec even_static n = if n = 0 then "even" else odd_static (n - 1)
and odd_static n = if n = 0 then "odd" else even_static (n - 1)

let statics : Obj.t array =
  [| Obj.repr "static text"; Obj.repr (1, 2, 3); Obj.repr [ 1; 2; 3 ]; Obj.repr [||]; Obj.repr even_static;
     Obj.repr odd_static; Obj.repr 3.25;
     Obj.repr [| 1.; 2. |]; Obj.repr (Some "x"); Obj.repr (opaque ref) |]

let make_infix id =
  let s = opaque (string_of_int id) in
  let rec f n = if n = 0 then s else g (n - 1)
  and g n = if n = 0 then s ^ "g" else f (n - 1) in
  ignore (opaque (Obj.repr f));
  Obj.repr g

let () = assert (Obj.tag (make_infix 1) = Obj.infix_tag)

let rec tree depth id = if depth = 0 then Leaf id
  else Node (tree (depth - 1) (id + 1), string_of_int id, tree (depth - 1) (id + 2))

let rec tree_is depth id = function
  | Leaf n -> depth = 0 && n = id
  | Node (l, s, r) -> depth > 0 && s = string_of_int id && tree_is (depth - 1) (id + 1) l
      && tree_is (depth - 1) (id + 2) r

let an_object id =
  let s = string_of_int id in
  Obj.repr
    (object
       method number = id
       method text = s
    end)

(* The first evaluation of an object writes the methods' table into a cache of the module, and that of two domains at
   once is a data race of compiled code: so it happens here, before there are domains. *)
let () = ignore (opaque (an_object 0))

let letter id = Char.chr (97 + (id mod 26))

let make kind id : Obj.t =
  match kind with
  | Immediate -> Obj.repr id
  | Small -> Obj.repr (id, string_of_int id, Some (id + 1), `Other id)
  | Text -> Obj.repr (String.make (id mod 50) (letter id))
  | Long_text -> Obj.repr (Bytes.make (3000 + (id mod 1000)) (letter id))
  | Large -> Obj.repr (Array.init (300 + (id mod 300)) (fun i -> id + i))
  | Large_of_blocks -> Obj.repr (Array.init 280 (fun i ->
    if i land 15 = 0 then Obj.repr (string_of_int (id + i)) else Obj.repr (id + i)))
  | Static -> statics.(id mod Array.length statics)
  | Static_c -> Root.c_static ()
  | Closure ->
      let s = opaque (string_of_int id) in
      Obj.repr (fun x -> (s, x + id))
  | Infix -> make_infix id
  | Lazy_value ->
      let id = opaque id in
      Obj.repr (lazy (string_of_int id))
  | Lazy_forced ->
      let id = opaque id in
      let l = lazy (string_of_int id) in
      ignore (Lazy.force l);
      Obj.repr l
  | Lazy_float ->
      let id = opaque id in
      let l = lazy (float_of_int id) in
      ignore (Lazy.force l);
      Obj.repr l
  | Continuation -> Par.suspended id
  | Abstract -> abstract id (1 + (id mod 8))
  | Large_abstract -> abstract id 400
  | Custom -> custom id false Root.none false
  | Large_custom -> custom id true Root.none false
  | Owner -> custom id (id land 7 = 0) (Root.create_or_fail (string_of_int id)) false
  | Begetter -> custom id (id land 7 = 0) Root.none true
  | Float -> Obj.repr (float_of_int id +. 0.5)
  | Float_array -> Obj.repr (Array.init (id mod 300) (fun i -> float_of_int (id + i)))
  | Int64 -> Obj.repr (Int64.add (Int64.of_int id) 4_000_000_000L)
  | Bigarray -> Obj.repr (Bigarray.Array1.of_array Bigarray.int Bigarray.c_layout [| id; id + 1; id + 2 |])
  | Object -> an_object id
  | Exception -> Obj.repr (Boom (id, string_of_int id))
  | Local_exception ->
      let module M = struct exception Inner of int * string end in
      Obj.repr (M.Inner (id, string_of_int id), fun e -> match e with M.Inner (n, s) -> n = id && s = string_of_int id
                  | _ -> false)
  | List -> Obj.repr (List.init (if id land 63 = 0 then 3000 else id mod 60) (fun i -> string_of_int (id + i)))
  | Tree -> Obj.repr (tree 5 id)
  | Cycle ->
      let rec a = { number = id; next = a; text = "" } in
      let b = { number = id + 1; next = a; text = string_of_int id } in
      a.next <- b;
      Obj.repr b
  | Table ->
      let h = Hashtbl.create 8 in
      for i = 0 to 20 do Hashtbl.replace h (id + i) (string_of_int i) done;
      Obj.repr h
  | Ephemeron ->
      let key = opaque (string_of_int id) in
      let e = Ephemeron.K1.make key (string_of_int (id + 1)) in
      Obj.repr (key, e)
  | Weak ->
      let w = Weak.create 2 in
      let s = opaque (string_of_int id) in
      Weak.set w 0 (Some s);
      Weak.set w 1 (Some (opaque (string_of_int (id + 1))));
      Obj.repr (s, w)
  | Mutable -> Obj.repr (ref (0, string_of_int id))

let int_is (v : Obj.t) n = Obj.is_int v && (Obj.obj v : int) = n
let text_is (v : Obj.t) s = Obj.is_block v && Obj.tag v = Obj.string_tag && String.equal (Obj.obj v) s

(* A tuple of `size` fields. *)
let tuple (v : Obj.t) size = Obj.is_block v && Obj.tag v = 0 && Obj.size v = size

(* Whether v is `make kind id`, given that it has been changed `aux` times in the case of Mutable, that numbers adding
   up to `aux` were sent to it in the case of Continuation, and that its cell is `aux` if it has one. *)
let is kind id aux (v : Obj.t) =
  match kind with
  | Immediate -> int_is v id
  | Small ->
      tuple v 4
      &&
      let a, b, c, d = Obj.obj v in
      a = id && b = string_of_int id && c = Some (id + 1) && d = `Other id
  | Text -> text_is v (String.make (id mod 50) (letter id))
  | Long_text -> text_is v (String.make (3000 + (id mod 1000)) (letter id))
  | Large ->
      tuple v (300 + (id mod 300))
      &&
      let ok = ref true in
      Array.iteri (fun i x -> if x <> id + i then ok := false) (Obj.obj v : int array);
      !ok
  | Large_of_blocks ->
      tuple v 280
      &&
      let ok = ref true in
      for i = 0 to 279 do
        let x = Obj.field v i in
        if not (if i land 15 = 0 then text_is x (string_of_int (id + i)) else int_is x (id + i)) then ok := false
      done;
      !ok
  | Static -> v == statics.(id mod Array.length statics)
  | Static_c -> v == Root.c_static () && int_is (Obj.field v 0) 1789 && int_is (Obj.field v 1) 1848
  | Closure -> Obj.is_block v && Obj.tag v = Obj.closure_tag && (Obj.obj v : int -> string * int) 7 =
      (string_of_int id, id + 7)
  | Infix ->
      Obj.is_block v && Obj.tag v = Obj.infix_tag
      && (Obj.obj v : int -> string) 0 = string_of_int id ^ "g"
      && (Obj.obj v : int -> string) 1 = string_of_int id
  | Lazy_value | Lazy_forced -> Obj.is_block v && Lazy.force (Obj.obj v : string Lazy.t) = string_of_int id
  | Lazy_float -> Obj.is_block v && Lazy.force (Obj.obj v : float Lazy.t) = float_of_int id
  | Continuation -> if Par.has_continuations then Obj.is_block v && Obj.tag v = 245
      else text_is v (string_of_int (id + aux))
  | Abstract -> abstract_is v id (1 + (id mod 8))
  | Large_abstract -> abstract_is v id 400
  | Custom | Large_custom | Begetter -> custom_is v aux id
  | Owner -> custom_is v aux id && text_is (Root.get (custom_owned v)) (string_of_int id)
  | Float -> Obj.is_block v && Obj.tag v = Obj.double_tag && (Obj.obj v : float) = float_of_int id +. 0.5
  | Float_array ->
      let n = id mod 300 in
      Obj.is_block v && Obj.size v = n
      && (n = 0
         || Obj.tag v = Obj.double_array_tag
            &&
            let ok = ref true in
            Array.iteri (fun i x -> if x <> float_of_int (id + i) then ok := false) (Obj.obj v : float array);
            !ok)
  | Int64 -> Obj.is_block v && Obj.tag v = Obj.custom_tag && (Obj.obj v : int64) =
      Int64.add (Int64.of_int id) 4_000_000_000L
  | Bigarray ->
      Obj.is_block v && Obj.tag v = Obj.custom_tag
      &&
      let a : (int, Bigarray.int_elt, Bigarray.c_layout) Bigarray.Array1.t = Obj.obj v in
      Bigarray.Array1.dim a = 3 && a.{0} = id && a.{1} = id + 1 && a.{2} = id + 2
  | Object ->
      Obj.is_block v && Obj.tag v = Obj.object_tag
      &&
      let o : < number : int ; text : string > = Obj.obj v in
      o#number = id && o#text = string_of_int id
  | Exception -> ( tuple v 3 && match (Obj.obj v : exn) with Boom (n, s) -> n = id && s = string_of_int id | _ -> false)
  | Local_exception ->
      tuple v 2
      &&
      let e, test = (Obj.obj v : exn * (exn -> bool)) in
      test e
  | List ->
      let n = if id land 63 = 0 then 3000 else id mod 60 in
      let rec go i (v : Obj.t) = if i = n then int_is v 0
        else tuple v 2 && text_is (Obj.field v 0) (string_of_int (id + i)) && go (i + 1) (Obj.field v 1) in
      go 0 v
  | Tree -> Obj.is_block v && tree_is 5 id (Obj.obj v)
  | Cycle ->
      tuple v 3
      &&
      let b : cycle = Obj.obj v in
      b.number = id + 1 && b.text = string_of_int id && b.next.number = id && b.next.next == b
  | Table ->
      tuple v 4
      &&
      let h : (int, string) Hashtbl.t = Obj.obj v in
      Hashtbl.length h = 21 && Hashtbl.find_opt h (id + 20) = Some "20"
  | Ephemeron ->
      tuple v 2
      &&
      let key, e = (Obj.obj v : string * (string, string) Ephemeron.K1.t) in
      key = string_of_int id && Ephemeron.K1.query e key = Some (string_of_int (id + 1))
  | Weak ->
      tuple v 2
      &&
      let s, w = (Obj.obj v : string * string Weak.t) in
      s = string_of_int id && Weak.get w 0 = Some s && (match Weak.get w 1 with None -> true
                                                          | Some t -> t = string_of_int (id + 1))
  | Mutable -> tuple v 1 && !(Obj.obj v : (int * string) ref) = (aux, string_of_int id)

(* --- values whose death a test can tell --------------------------------------------------------------------------- *)

(* Up to OCaml 5.4 the runtime loses weak arrays and ephemerons of domains that end (docs/internals/upstream.md). *)
let loses_arrays = Par.multicore && not Root.marks_late

(* Not those whose end runs code of the model. *)
let mortal =
  let fits = function
    | Owner | Begetter | Lazy_value | Lazy_forced | Lazy_float -> false
    | Ephemeron | Weak -> not loses_arrays
    | _ -> true
  in
  Array.of_list (List.filter fits (Array.to_list kinds))

(* Whether such a value is never collected. *)
let lasts kind id = match kind with
  | Immediate | Static | Static_c -> true
  | Float_array -> id mod 300 = 0
  | List -> id land 63 <> 0 && id mod 60 = 0
  | _ -> false
