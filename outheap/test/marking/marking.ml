(* SPDX-License-Identifier: MIT *)
(* Does marking find everything, follow nothing else, and keep the collector's pace?   marking PART…   (--list)

   Each part builds values whose contents can be computed again, runs collections of all kinds, fills what they freed
   with junk, and looks whether the values are still the same. *)
external classify : Obj.t -> int = "marking_classify"
external pattern : Obj.t -> int -> Obj.t = "marking_pattern"
external odd : Obj.t -> int -> int = "marking_odd"
external same : Obj.t -> Obj.t -> int -> bool = "marking_same"
external occupy : Obj.t -> unit = "marking_occupy"

external begin_marking : unit -> bool = "marking_begin_marking" [@@noalloc]

(* A slice. From OCaml 5.5 on a cycle would not end without minor collections. *)
let slice =
  let count = Atomic.make 0 in
  fun words ->
    if Atomic.fetch_and_add count 1 land 15 = 0 && begin_marking () then Gc.minor ();
    ignore (Gc.major_slice words)

let failed fmt = Printf.ksprintf (fun s -> Printf.printf "FAILED: %s\n%!" s; exit 1) fmt

(* Junk of the sizes in use, so that a block that was freed by mistake is overwritten. *)
let junk () =
  for i = 0 to 60_000 do
    ignore (Sys.opaque_identity (Array.make (1 + (i mod 12)) 0x5a5a5a))
  done;
  for i = 0 to 200 do
    ignore (Sys.opaque_identity (Array.make (100 + (7 * i)) 0x5a5a5a))
  done

let collect verify =
  for round = 1 to 4 do
    (match round with
     | 1 -> Gc.full_major ()
     | 2 -> for _ = 1 to 300 do slice 1000 done
     | 3 -> Gc.compact ()
     | _ -> Gc.major ());
    junk ();
    Gc.minor ();
    verify ()
  done

(* --- every kind of block --- *)

type shape = {
  tuple : int * string * float;
  closure : int -> int;
  odd : int -> bool; (* two functions in one closure: a pointer into its middle *)
  pending : (int * string) lazy_t;
  forced : (int * string) lazy_t;
  table : (int, string list) Hashtbl.t;
  thing : < get : int; set : int -> unit >;
  floats : float array;
  sizes : string array array; (* arrays of 0 to 90 fields *)
  mutable later : string list;
}

let shape n =
  let text k = Printf.sprintf "%d/%d" n k in
  let offset = text 0 and table = Hashtbl.create 8 in
  for k = 1 to 20 do Hashtbl.replace table k [ text k; text (k + 1) ] done;
  let rec even i = if i = 0 then String.length offset > 0 else odd (i - 1)
  and odd i = if i = 0 then String.length offset = 0 else even (i - 1) in
  let forced = lazy (n, text 5) in
  ignore (Lazy.force forced);
  {
    tuple = (n, text 1, float n);
    closure = (fun i -> i + n + String.length offset);
    odd;
    pending = lazy (n, offset ^ text 4);
    forced;
    table;
    thing = object
        val mutable v = [ text 7 ]
        method get = String.length (List.hd v)
        method set i = v <- [ text i ]
      end;
    floats = Array.init (n mod 50) (fun i -> float (i * n));
    sizes = Array.init (1 + n mod 91) (fun i -> Array.init i text);
    later = [];
  }

let check_shape n s =
  let text k = Printf.sprintf "%d/%d" n k in
  let want what b = if not b then failed "%s of shape %d" what n in
  want "tuple" (s.tuple = (n, text 1, float n));
  want "closure" (s.closure 3 = 3 + n + String.length (text 0));
  want "functions" (s.odd 7 && not (s.odd 4));
  want "forced" (Lazy.force s.forced = (n, text 5));
  if n mod 3 = 0 then want "pending" (Lazy.force s.pending = (n, text 0 ^ text 4));
  for k = 1 to 20 do want "table" (Hashtbl.find s.table k = [ text k; text (k + 1) ]) done;
  want "object" (s.thing#get > 0);
  s.thing#set (n mod 7);
  want "floats" (Array.for_all (fun x -> x >= 0.) s.floats && Array.length s.floats = n mod 50);
  Array.iteri (fun i a -> want "array" (a = Array.init i text)) s.sizes;
  want "later" (List.for_all (String.equal (text 9)) s.later);
  s.later <- text 9 :: s.later

let kinds () =
  let shapes = Array.init 150 shape in
  collect (fun () -> Array.iteri check_shape shapes)

(* --- much to do at once, and little --- *)

(* Blocks of pointers to blocks of pointers: more candidates than the queue holds, more spans than the mark stack. *)
let wide () =
  let nested size = Array.init size (fun i -> Array.init size (fun k -> [ ref (i, k) ])) in
  let check a =
    Array.iteri (fun i -> Array.iteri (fun k l -> if List.map ( ! ) l <> [ (i, k) ] then failed "field %d %d" i k)) a in
  List.iter
    (fun size ->
      let all = nested size in
      collect (fun () -> check all))
    [ 7; 63; 64; 65; 150; 400 ]

let deep () =
  let length = 300_000 in
  let list = List.init length (fun i -> (i, string_of_int i)) in
  let rec tower n = if n = 0 then `Leaf else `Node (ref n, tower (n - 1), `Leaf) in
  let left = tower 50_000 in
  collect (fun () ->
      List.iteri (fun i (k, s) -> if k <> i || s <> string_of_int i then failed "element %d" i) list;
      let rec height n = function
        | `Leaf -> n
        | `Node (r, t, _) -> if !r + n <> 50_000 then failed "node" else height (n + 1) t in
      if height 0 left <> 50_000 then failed "height")

(* Large blocks and small ones that point to each other, in memory of both kinds. *)
let large () =
  let field i k = if k mod 3 = 0 then Some (i + k) else None in
  let blocks = Array.init 300 (fun i -> Array.init (300 + (31 * i)) (field i)) in
  let inner = Array.init 300 (fun i -> Array.sub blocks.(i) 5 200) in
  collect (fun () ->
      Array.iteri (fun i -> Array.iteri (fun k x -> if x <> field i k then failed "large %d %d" i k)) blocks;
      Array.iteri (fun i -> Array.iteri (fun k x -> if x != blocks.(i).(k + 5) then failed "shared %d %d" i k)) inner)

(* --- the pace: a slice does the work that it was asked for --- *)

let pace () =
  let words = 4_000_000 and step = 20_000 in
  let heap = Array.init (words / 16) (fun i -> [ i; i; i ], Some (i, i)) in
  let cycles () = (Gc.quick_stat ()).major_collections in
  let slices () =
    let start = cycles () and n = ref 0 in
    while cycles () = start && !n < 100_000 do
      slice step;
      incr n
    done;
    !n in
  Gc.full_major ();
  ignore (slices ());
  let n = List.fold_left min max_int (List.init 3 (fun _ -> slices ())) in
  ignore (Sys.opaque_identity heap);
  (* A cycle marks all of it and sweeps all of it. With stock's loop it takes 445 slices, with this one 435. *)
  let least = 9 * words / step / 5 and most = 3 * words / step in
  if n < least || n > most then failed "%d slices of %d words for a cycle over %d" n step words

(* --- what is not the heap's --- *)

let foreign () =
  let anchors = [ Obj.repr (ref 1); Obj.repr (Array.make 500 0) ] in
  Gc.full_major ();
  let all =
    Array.of_list
      (List.concat_map
         (fun anchor ->
           List.filter_map
             (fun bit ->
               let make () = pattern anchor bit in
               if classify (make ()) = 0 then Some (bit, anchor, [| make () |], ref (make (), 1)) else None)
             (List.init 12 (fun i -> 32 + i)))
         anchors) in
  (* Integers that would be addresses in blocks, if their low bit were clear. *)
  let numbers () = Array.init 400 (fun i -> odd (List.nth anchors (i mod 2)) (i / 2)) in
  let sum a = Array.fold_left ( + ) 0 a in
  let integers = Array.init 50 (fun _ -> let a = numbers () in a, sum a) in
  (* Bytes that would be such addresses. *)
  let bytes =
    Array.map
      (fun (a, _) ->
        let b = Bytes.create (8 * Array.length a) in
        Array.iteri (fun i n -> Bytes.set_int64_ne b (8 * i) (Int64.shift_left (Int64.of_int n) 1)) a;
        b)
      integers in
  if Array.length all < 5 then failed "few patterns: %d" (Array.length all);
  collect (fun () ->
      Array.iter (fun (a, total) -> if sum a <> total then failed "integers have changed") integers;
      Array.iter (fun b -> if Bytes.length b <> 3200 then failed "bytes have changed") bytes;
      Array.iter
        (fun (bit, anchor, a, r) ->
          if not (same a.(0) anchor bit && same (fst !r) anchor bit) then failed "pattern %d has changed" bit)
        all)

(* Young blocks that old ones point to, while slices run. *)
let young () =
  let old = Array.make 10_000 [] in
  Gc.full_major ();
  for round = 1 to 200 do
    for i = 0 to 49 do old.((round * 50) + i - 50) <- [ round; i ] done;
    slice 3_000
  done;
  collect (fun () ->
      Array.iteri (fun i l -> if l <> [ (i / 50) + 1; i mod 50 ] then failed "young value %d" i) old)

(* Something else takes the address space that the heap would grow into, so that it grows elsewhere. *)
let outgrown () =
  let small = Array.init 1000 (fun i -> Some i) and large = Array.make 1000 (Some 0) in
  Gc.full_major ();
  occupy (Obj.repr small.(3));
  occupy (Obj.repr large);
  let blocks = Array.init 45 (fun i -> Array.make 1_000_000 (Some i)) in
  let cells = Array.init 500 (fun i -> Array.init 20_000 (fun k -> Some (i + k))) in
  collect (fun () ->
      Array.iteri (fun i b -> if b.(0) <> Some i || b.(999_999) <> Some i then failed "block %d" i) blocks;
      Array.iteri (fun i -> Array.iteri (fun k c -> if c <> Some (i + k) then failed "cell %d %d" i k)) cells;
      Array.iteri (fun i c -> if c <> Some i then failed "old cell %d" i) small)

(* --- several domains, and what only OCaml 5 has --- *)

type _ Effect.t += Wait : unit Effect.t

(* Stacks that wait in continuations, with values that nothing else holds. *)
let continuations () =
  let waiting n =
    let stopped = ref None in
    let body () =
      let values = List.init 50 (fun i -> ref (n + i)) in
      Effect.perform Wait;
      List.fold_left (fun sum r -> sum + !r) 0 values in
    Effect.Deep.match_with (fun () -> ignore (Sys.opaque_identity (body ()))) ()
      { retc = ignore; exnc = raise;
        effc = (fun (type a) (e : a Effect.t) ->
            match e with
            | Wait ->
              Some
                (fun (k : (a, unit) Effect.Deep.continuation) ->
                  stopped := Some (fun () -> Effect.Deep.continue k ()))
            | _ -> None) };
    Option.get !stopped in
  let all = Array.init 300 waiting in
  collect ignore;
  Array.iter (fun resume -> resume ()) all

let domains () =
  let shared = Array.init 200 (fun i -> Atomic.make [ i ]) in
  let work id () =
    let shapes = Array.init 20 (fun i -> shape ((100 * id) + i)) in
    for round = 1 to 12 do
      let i = ((id * 37) + (round * 11)) mod 200 in
      let l = Atomic.get shared.(i) in
      if List.exists (fun x -> x mod 200 <> i) l then failed "shared list %d" i;
      ignore (Atomic.compare_and_set shared.(i) l ((i + 200) :: l));
      if round mod 6 = 0 then Gc.full_major () else slice 5_000;
      junk ();
      Array.iteri (fun k s -> check_shape ((100 * id) + k) s) shapes
    done in
  List.iter Domain.join (List.init 3 (fun id -> Domain.spawn (work id)))

(* A thread marks while another starts a domain, which forces lazy values: the tags that it changes are not lost. A
   marker that writes whole headers fails in two of three runs of 60 rounds. Without the delay domains hardly get on,
   with any runtime. *)
let lazies () =
  let n = 200_000 and stop = Atomic.make false in
  let fresh i = lazy (Sys.opaque_identity (ref i)) in
  let values = Array.init n fresh in
  let marker = Thread.create (fun () -> while not (Atomic.get stop) do Gc.major (); Thread.delay 0.0003 done) () in
  for _ = 1 to 20 do
    for i = 0 to n - 1 do values.(i) <- fresh i done;
    let force i l = if !(Lazy.force l) <> i then failed "lazy value %d" i in
    Domain.join (Domain.spawn (fun () -> Array.iteri force values));
    Array.iteri (fun i l -> if not (Lazy.is_val l) then failed "lazy value %d is not forced" i) values
  done;
  Atomic.set stop true;
  Thread.join marker

(* Weak arrays of lazy values that are forced while the collector marks: it may not put a young result in the place of a
   key. The stock runtime does (docs/internals/upstream.md). *)
let weak_lazies () =
  let n = 1000 in
  let text i = "value " ^ string_of_int i in
  let body rounds id () =
    let rng = Random.State.make [| id |] in
    for round = 1 to rounds do
      let all = Array.init n (fun i -> let s = text i in lazy (s ^ "!")) in
      let weak = Weak.create n in
      Array.iteri (fun i l -> Weak.set weak i (Some l)) all;
      if round mod 2 = 0 then Gc.full_major ();
      for i = 0 to n - 1 do
        ignore (Lazy.force all.(i));
        if i mod 10 = 9 then ignore (Gc.major_slice (Random.State.int rng 20_000));
        if id > 0 then ignore (Sys.opaque_identity (Array.make (1 + Random.State.int rng 3000) 0))
      done;
      Array.iteri (fun i l ->
        match Weak.get weak i with
        | Some l when Lazy.force l <> text i ^ "!" -> failed "round %d: lazy value %d" round i
        | _ -> ()) all
    done
  in
  body 100 0 ();
  let others = List.init 3 (fun id -> Domain.spawn (body 20 (id + 1))) in
  body 20 4 ();
  List.iter Domain.join others

(* Domains that end leave weak arrays: each cycle ends all the same, and no key is lost or freed. The stock runtime of
   5.3 and 5.4 stops (docs/internals/upstream.md). Others than OCaml 5.1, where this is not mended. *)
let weak_domains () =
  if Sys.ocaml_version < "5.2" then ()
  else begin
    let text i = "value " ^ string_of_int i in
    let small () = Gc.set { (Gc.get ()) with minor_heap_size = 4096 } in
    small ();
    let kept = Array.init 1000 text in
    let recent = Array.make 8 [||] in
    let dropped () =
      small ();
      ignore (Sys.opaque_identity (Array.init 750 (fun _ -> Weak.create 4))) in
    let body slices () =
      small ();
      let arrays =
        Array.init 750 (fun i ->
          let w = Weak.create 4 in
          Weak.set w 0 (Some (text i));
          Weak.set w 1 (Some kept.(i));
          w) in
      if slices mod 4 = 0 then for _ = 1 to slices do ignore (Gc.major_slice 2_000) done;
      recent.(slices mod 8) <- arrays in
    let check () =
      Array.iter (fun arrays ->
        Array.iteri (fun i w ->
          (match Weak.get w 0 with Some s when s <> text i -> failed "another key %d" i | _ -> ());
          if Weak.get w 1 <> Some (text i) then failed "key %d is lost" i) arrays) recent in
    for round = 1 to 300 do
      Domain.join (Domain.spawn dropped);
      if round mod 5 = 0 then Gc.full_major ()
    done;
    for round = 1 to 300 do
      Domain.join (Domain.spawn (body (round mod 30)));
      if round mod 5 = 0 then Gc.full_major () else if round mod 50 < 25 then ignore (Gc.major_slice 500);
      if round mod 3 = 0 then check ()
    done;
    ignore (Sys.opaque_identity kept)
  end

(* --- a graph without locality, which fills the mark stack --- *)

type node = { id : int; mutable left : node; mutable right : node; weight : int; depth : int }

let scattered () =
  let size = 1_200_000 in
  let scatter i = ((((i + 1) * 0x5DEECE66D) lxor (i lsr 3)) land 0xFFFFFFFFFFFF) lsr 13 mod size in
  let left i = scatter (2 * i) and right i = scatter ((2 * i) + 1) in
  let nodes = Array.init size (fun id -> let rec n = { id; left = n; right = n; weight = id; depth = 0 } in n) in
  Array.iteri (fun i n -> n.left <- nodes.(left i); n.right <- nodes.(right i)) nodes;
  (* Most hang together by one node: marking begins with that. *)
  let first = nodes.(0) in
  let verify () =
    let seen = Bytes.make size '0' and found = ref 0 in
    let rec visit = function
      | [] -> ()
      | n :: rest when Bytes.get seen n.id = '1' -> visit rest
      | n :: rest ->
        Bytes.set seen n.id '1';
        incr found;
        if n.weight <> n.id || n.depth <> 0 then failed "node %d has other contents" n.id;
        if n.left.id <> left n.id || n.right.id <> right n.id then failed "node %d leads elsewhere" n.id;
        visit (n.left :: n.right :: rest) in
    visit [ first ];
    !found in
  let whole = verify () in
  if whole < size / 2 then failed "only %d nodes hang together" whole;
  Array.fill nodes 0 size first;
  collect (fun () -> if verify () <> whole then failed "nodes are lost")

let parts =
  [ "kinds", kinds; "wide", wide; "deep", deep; "large", large; "pace", pace; "foreign", foreign; "young", young;
    "continuations", continuations; "domains", domains; "lazies", lazies;
    "weak-lazies", weak_lazies; "weak-domains", weak_domains; "outgrown", outgrown; "scattered", scattered ]

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [ "--list" ] ->
    let is_slow name = name = "kinds" in (* with the debug runtime *)
    List.iter (fun (name, _) -> print_endline (if is_slow name then name ^ " slow" else name)) parts
  | names ->
    List.iter
      (fun name -> match List.assoc_opt name parts with Some f -> f () | None -> failed "no part %s" name)
      names;
    Printf.printf "%d passed, 0 failed\n" (List.length names)
