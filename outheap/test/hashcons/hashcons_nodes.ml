(* SPDX-License-Identifier: MIT *)
(* What nodes may be made of; equality and hash that do what they like. *)
open Hashcons_checks

let generic d = Hashcons.hashcons (Hashcons.create 1) d

let copied what d =
  let before = opaque (Marshal.to_string d [ Marshal.Closures ]) in
  let v = opaque (generic d) in
  majors 1;
  check (what ^ ": equal") (compare v.node d = 0 && v.hkey = (generic (Marshal.from_string before 0)).hkey);
  check (what ^ ": the source is as it was") (Marshal.to_string d [ Marshal.Closures ] = before);
  let all = [ v.node; d ] in
  check (what ^ ": marshalled") (compare (Marshal.from_string (Marshal.to_string all []) 0) all = 0);
  check (what ^ ": hashed") (Hashtbl.hash v.node = Hashtbl.hash d);
  if off_heap && Obj.is_block (Obj.repr d) then check (what ^ ": a cell") (Hashcons.is_cell (Obj.repr v))

type 'a tree = Empty | Node of 'a tree * 'a * 'a tree
type cyclic = { mutable next : cyclic option; name : string }

let kinds () =
  let dynamic s = String.concat "" [ s; "" ] in
  copied "immediate" 5;
  copied "constant" [ Some "static"; None ];
  copied "string" (dynamic "abc");
  copied "empty string" (dynamic "");
  copied "float" (opaque 1.5);
  copied "floats" (Array.init 5 float);
  copied "record of floats" { Complex.re = opaque 1.; im = opaque 2. };
  copied "boxed" (Int64.of_int (opaque 5), Int32.of_int (opaque 6), Nativeint.of_int (opaque 7));
  copied "empty array" (Array.sub [| opaque 1 |] 0 0, opaque 3);
  copied "list" (List.init 1000 string_of_int);
  copied "array" (Array.init 3000 (fun i -> (i, dynamic "x")));
  copied "polymorphic variant" (`A (dynamic "a", `B [ opaque 1 ]));
  copied "tree"
    (let rec go d = if d = 0 then Empty else Node (go (d - 1), d, go (d - 1)) in
     go (opaque 9));
  copied "bytes" (Bytes.make 100_000 'b');
  copied "long string" (String.make 3_000_000 's');
  copied "map" (List.fold_left (fun m i -> Node (m, i, Empty)) Empty (List.init 5000 Fun.id));
  (* sharing is kept: this one has 2^30 leaves *)
  let rec dag n = if n = 0 then Empty else let t = dag (n - 1) in Node (t, n, t) in
  let d = dag (opaque 30) in
  let module T = Hashcons.Make (struct
    type t = int tree

    let equal = ( == )
    let hash _ = 1
  end) in
  let v = T.hashcons (T.create 1) d in
  if off_heap then check "sharing" (match v.node with Node (a, _, b) -> a == b && a != d | Empty -> false);
  let module C = Hashcons.Make (struct
    type t = cyclic

    let equal a b = a.name = b.name
    let hash c = Hashtbl.hash c.name
  end) in
  let t = C.create 1 in
  let c = { next = None; name = dynamic "cycle" } in
  c.next <- Some c;
  let v = C.hashcons t c in
  majors 2;
  check "cycle" (match v.node.next with Some n -> n == v.node && n.name = "cycle" | None -> false);
  check "the same cycle" (C.hashcons t c == v)

(* The caller gives the hash, and asks for it with the node. *)
let given () =
  let module T = Hashcons.Make_with_hash (struct
    type t = string list

    let equal = List.equal String.equal
  end) in
  let t = T.create 1 in
  let node i = [ string_of_int (opaque i); "static" ] in
  let hash i = if i land 1 = 0 then i else -i in
  let values = Array.init 1000 (fun i -> T.hashcons t (hash i) (node i)) in
  let known what i (v : string list Hashcons.hash_consed) =
    let expected = if off_heap then v.hkey else -1 in
    check (what ^ ": hkey") (v.hkey = hash i land max_int);
    check (what ^ ": found") (T.hashcons t (hash i) (node i) == v);
    check (what ^ ": node") (Hashcons.hkey_of_node v.node = expected);
    check (what ^ ": value") (Hashcons.hkey_of_node v = -1);
    check (what ^ ": inside the node") (Hashcons.hkey_of_node (List.hd v.node) = -1);
    check (what ^ ": copied along") (Hashcons.hkey_of_node (List.tl v.node) = -1)
  in
  Array.iteri (known "made") values;
  majors 2;
  Array.iteri (known "later") values;
  check "other hash" (T.hashcons t 7 (node 3) != values.(3) && (T.hashcons t 7 (node 3)).hkey = 7);
  let none what d = check (what ^ " is no node") (Hashcons.hkey_of_node d = -1) in
  none "what is equal" (Obj.repr (node 3));
  none "immediate" (Obj.repr (opaque 5));
  none "static" (Obj.repr "static");
  let static = generic "static" in
  check "static node" (Hashcons.hkey_of_node static.node = if off_heap then static.hkey else -1);
  none "immediate node" (Obj.repr (generic (opaque 5)).node);
  none "foreign pointer" (foreign ());
  let large = generic (Array.init 100_000 string_of_int) in
  check "large" (Hashcons.hkey_of_node large.node = if off_heap then large.hkey else -1);
  none "in a large one" (Obj.repr large.node.(99_999));
  (* What lies in the cell of another value is copied as a node; that value itself is none. *)
  let inner = T.hashcons t 5 (node 5) in
  let other = T.hashcons (T.create 1) 6 inner.node and above = generic inner in
  if off_heap then (
    check "nodes of two values" (other != inner && other.node != inner.node && other.node = inner.node);
    check "each has its hash" (Hashcons.hkey_of_node inner.node = 5 && Hashcons.hkey_of_node other.node = 6);
    check "a value as a node" (above.node == inner && Hashcons.hkey_of_node above.node = -1));
  ignore (opaque (inner, other, above));
  (* Who keeps a node keeps its value, wherever the node was when it was looked up. *)
  if off_heap then (
    let t = T.create 1 and copy l = List.map (fun s -> String.concat s [ ""; "" ]) l in
    let keeps what d =
      let[@inline never] node () = (T.hashcons t 9 (d ())).node in
      let first = node () in
      majors 3;
      check (what ^ ": it is kept") ((T.hashcons t 9 (copy first)).node == first);
      ignore (opaque first)
    in
    keeps "of the heap" (fun () -> copy [ "of the heap" ]);
    keeps "static" (fun () -> [ "static"; "too" ]);
    keeps "of another value" (fun () -> inner.node);
    keeps "in another value" (fun () -> List.tl (T.hashcons t 10 (copy [ "a"; "in another" ])).node));
  let keeps_each what nodes =
    let t = Hashcons.create 1 in
    let[@inline never] make () = List.map (fun d -> (Hashcons.hashcons t (d ())).Hashcons.node) nodes in
    let first = make () in
    majors 3;
    let again = List.map (fun d -> Marshal.from_string (Marshal.to_string (d ()) []) 0) nodes in
    List.iter2 (fun n d -> check what ((Hashcons.hashcons t d).Hashcons.node == n)) first again
  in
  if off_heap then (
    keeps_each "a static string" [ (fun () -> "static string") ];
    keeps_each "static floats" [ (fun () -> 2.5) ];
    keeps_each "a static int64" [ (fun () -> 123L) ];
    keeps_each "immediates" [ (fun () -> 5); (fun () -> -1) ];
    keeps_each "empty arrays" [ (fun () -> [||]) ])

(* Not compared or hashed: they cannot be. *)
module Owned =
  Outheap_linear.List.Make
    (Outheap_linear.Plain (struct
      type t = int
    end))
    ()

module Any = Hashcons.Make (struct
  type t = Obj.t

  let equal = ( == )
  let hash _ = 0
end)

let refused () =
  let t = Any.create 1 in
  let refuses what path d =
    match Any.hashcons t (Obj.repr d) with
    | _ -> check (what ^ ": not refused") (not off_heap)
    | exception Invalid_argument m ->
        check (Printf.sprintf "%s: %s" what m) (off_heap && m = "Outheap_hashcons.hashcons: " ^ path)
  in
  let n = opaque 3 in
  refuses "closure" "the node itself: closure" (fun x -> x + n);
  refuses "closure inside" ".1.0.2: closure" (n, [ (n, n, fun x -> x + n) ]);
  refuses "lazy" ".0: lazy" (lazy (n + 1), n);
  refuses "forced lazy" ".1: lazy" (n, let l = lazy (string_of_int n) in ignore (Lazy.force l); l);
  refuses "object" ".0: object or extension constructor" (object val x = n method x = x end, n);
  refuses "channel" ".0: _chan" [ stdout ];
  refuses "custom" ".0: hashcons_test.strange" [ custom () ];
  refuses "abstract" ".0: abstract" [ abstract () ];
  refuses "foreign" ".0: foreign pointer" [ foreign () ];
  let rec long n = if n = 0 then Obj.repr [ custom () ] else Obj.repr [ long (n - 1) ] in
  (match Any.hashcons t (Obj.repr (long 1000)) with
  | _ -> check "long path" (not off_heap)
  | exception Invalid_argument m -> check "long path" (String.length m < 400));
  if Sys.backend_type = Sys.Native then ( (* bytecode has no static data *)
    let static = opaque List.length in
    let v = Any.hashcons t (Obj.repr (n, static)) in
    check "static closure" (snd (Obj.obj v.node) [ 1; 2 ] = 2);
    check "static exception"
      (match snd (Obj.obj (Any.hashcons t (Obj.repr (n, Not_found))).node) with Not_found -> true | _ -> false));
  if off_heap then (
    (* a region's data are copied *)
    let r = match Outheap_region.copy (List.init 10 string_of_int) with Ok r -> r | Error _ -> assert false in
    let v = Any.hashcons t (Obj.repr (n, Outheap_region.get r)) in
    (match Outheap_region.delete (Outheap_region.region r) with
    | Ok () -> ()
    | Error e -> check (Outheap_region.error_to_string e) false);
    check "from a region" (snd (Obj.obj v.node) = List.init 10 string_of_int);
    ignore (opaque v);
    (* and owned cells, which have other contents afterwards *)
    let l = Owned.of_list [ 1; 2; 3 ] in
    let v = Owned.borrow l (fun l -> Any.hashcons t (Obj.repr (n, l))) in
    let whole = Owned.borrow l (fun l -> Any.hashcons t (Obj.repr l)) in
    Owned.close l;
    let others = Owned.of_list [ 7; 8; 9 ] in
    check "from owned cells" (snd (Obj.obj v.node) = [ 1; 2; 3 ] && Obj.obj whole.node = [ 1; 2; 3 ]);
    Owned.close others);
  majors 2;
  validate "refused"

exception Stop

(* The functions of a table may raise, use the table, and collect. *)
let mode = ref `Plain
let others = ref 1000

module rec N : sig
  type t = { key : int; text : string }

  val equal : t -> t -> bool
  val hash : t -> int
end = struct
  type t = { key : int; text : string }

  let equal a b =
    (match !mode with
    | `Raise -> raise Stop
    | `Nest n when n > 0 -> mode := `Nest (n - 1)
    | `Nest _ ->
        mode := `Plain;
        (* the same node as the one that is being looked up, and others: the table grows *)
        let t = Global.table () in
        ignore (opaque (T.hashcons t b));
        for _ = 1 to 30 do
          incr others;
          ignore (opaque (T.hashcons t { key = !others; text = "" }))
        done
    | `Clear ->
        mode := `Plain;
        T.clear (Global.table ())
    | `Collect -> Gc.full_major ()
    | `Plain -> ());
    a.key = b.key && a.text = b.text

  let hash n = n.key land 3
end

and T : (Hashcons.S with type key = N.t) = Hashcons.Make (N)

and Global : sig
  val table : unit -> T.t
end = struct
  let it = ref None

  let table () =
    match !it with
    | Some t -> t
    | None ->
        let t = T.create 1 in
        it := Some t;
        t
end

let nested () =
  let t = Global.table () in
  let add key = T.hashcons t { N.key; text = string_of_int key } in
  let held = List.init 40 add in
  let is_right what = check what (List.for_all2 (fun v i -> add i == v) held (List.init 40 Fun.id)) in
  mode := `Raise;
  (match add 4 with _ -> check "raises" false | exception Stop -> ());
  mode := `Plain;
  is_right "after an exception";
  mode := `Collect;
  is_right "with collections";
  for i = 100 to 140 do
    mode := `Nest (below 6);
    let a = add i in
    mode := `Plain;
    check "one value, in spite of a nested lookup" (add i == a)
  done;
  is_right "after nested lookups";
  (* With room in front of those that were compared already, where a nested lookup puts its value. *)
  T.clear t;
  let early = ref (List.init 40 (fun i -> add (4 * i))) in
  let late = List.init 10 (fun i -> add (1000 + (4 * i))) in
  check "early" (List.length (opaque !early) = 40);
  early := [];
  majors 1;
  for i = 0 to 3 do
    mode := `Nest (4 + i);
    let a = add (2000 + (4 * i)) in
    mode := `Plain;
    check "one value, in spite of a nested lookup in front" (add (2000 + (4 * i)) == a)
  done;
  ignore (opaque late);
  let n = ref 0 in
  T.iter (fun v -> if v.node.key = 120 then incr n) t;
  check "once in the table" (!n <= 1);
  mode := `Clear;
  let a = add 300 in
  check "cleared meanwhile" (add 300 == a);
  ignore (opaque held);
  validate "nested"

(* In finalisers and signal handlers, in the middle of lookups. *)
let interrupts () =
  let module S = Hashcons.Make (struct include String let hash = Hashtbl.hash end) in
  let t = S.create 1 in
  let work k = ignore (opaque (S.hashcons t (string_of_int (below k)))) in
  let handled = ref 0 in
  let old = Sys.signal Sys.sigalrm (Sys.Signal_handle (fun _ -> incr handled; for _ = 1 to 20 do work 300 done)) in
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.0005; it_value = 0.0005 });
  for i = 1 to 1_000_000 do
    if i mod 50 = 0 then Gc.finalise (fun _ -> work 300) (ref i);
    work 300
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Sys.set_signal Sys.sigalrm old;
  validate "interrupts";
  let seen = Hashtbl.create 300 in
  S.iter (fun v -> check "each string once" (not (Hashtbl.mem seen v.node)); Hashtbl.add seen v.node ()) t
