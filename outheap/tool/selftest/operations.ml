(* SPDX-License-Identifier: MIT *)
(* Operations of the runtime and the library that look into values, on foreign pointers: what they must do, which is
   what OCaml 4.14 does with pointers out of the heap. *)

open Foreign

external locals : (int -> unit) -> Obj.t -> Obj.t -> int -> bool = "torture_locals"
external format_exception : exn -> string = "torture_format"

let sign n = if n < 0 then -1 else if n > 0 then 1 else 0
let show = text

(* --- comparison ----------------------------------------------------------------------------------------------------
   *)

(* All operators agree with `compare`, both ways round. *)
let consistent what (a : Obj.t) (b : Obj.t) =
  let c = sign (compare a b) in
  if sign (compare b a) <> - c then wrong "%s: compare is not antisymmetric" what;
  if (a = b) <> (c = 0) || (a <> b) <> (c <> 0) || (a < b) <> (c < 0) || (a > b) <> (c > 0) || (a <= b) <> (c <= 0)
    || (a >= b) <> (c >= 0) then
    wrong "%s: an operator does not agree with compare" what;
  c

let compare_foreign c =
  let i = pattern c and j = pattern c and k = pattern c in
  let a = foreign i and b = foreign j and d = foreign k in
  let what = Printf.sprintf "compare %s %s" (show (Foreign i)) (show (Foreign j)) in
  let ab = consistent what a b in
  if (ab = 0) <> (a == b) then wrong "%s: equal, but not the same" what;
  if consistent what a a <> 0 then wrong "%s: differs from itself" what;
  if ab <= 0 && compare b d <= 0 && compare a d > 0 then wrong "%s %s: not transitive" what (show (Foreign k))

let compare_with_int c =
  let i = pattern c and n = match int c 6 with 0 -> 0 | 1 -> max_int | 2 -> min_int | 3 -> -1
    | _ -> int c 100000 - 50000 in
  let what = Printf.sprintf "compare %d %s" n (show (Foreign i)) in
  if consistent what (Obj.repr n) (foreign i) <> -1 then wrong "%s: an int is not less than a pointer" what;
  (* the int with the same bits but the lowest *)
  let twin = Int64.(to_int (shift_right (of_string (Foreign.show i)) 1)) in
  if consistent what (Obj.repr twin) (foreign i) <> -1 then wrong "%s: its twin is not less" what

let compare_with_block c =
  let i = pattern c in
  let what = "compare a block and " ^ show (Foreign i) in
  let block : Obj.t =
    match int c 7 with
    | 0 -> Obj.repr "text" | 1 -> Obj.repr 1.5 | 2 -> Obj.repr 12345678901L | 3 -> Obj.repr [1; 2]
    | 4 -> Obj.repr (fun x -> x + i)
    | 5 -> Obj.repr (ref (string_of_int i)) | _ -> Obj.repr [| 1.; 2. |] in
  if consistent what block (foreign i) = 0 then wrong "%s: equal" what

let compare_structures c =
  let its = Array.init (1 + int c 10) (fun _ -> item c) in
  let a = Array.map value its and b = Array.map value its in
  let la = Array.to_list a and lb = Array.to_list b in
  if not (a = b) || compare a b <> 0 || not (la = lb) || compare (la, a) (lb, b) <> 0 then
    wrong "two arrays with the same items differ";
  let k = int c (Array.length its) and i = pattern c in
  let was = b.(k) in
  b.(k) <- foreign i;
  if (a = b) <> (match its.(k) with Foreign j -> foreign i == foreign j | _ -> false) then
    wrong "arrays that differ in %s and %s" (show its.(k)) (show (Foreign i));
  let first = sign (compare was (foreign i)) in
  if sign (compare a b) <> first || sign (compare b a) <> - first then wrong "arrays are not compared as their items"

let sort c =
  let a = Array.init (5 + int c 60) (fun _ -> foreign (pattern c)) in
  let l = List.sort compare (Array.to_list a) in
  let rec ordered = function x :: (y :: _ as r) -> compare x y <= 0 && not (x > y) && ordered r | _ -> true in
  if not (ordered l) then wrong "a sorted list of foreign pointers is not in order";
  let unique = List.sort_uniq compare (Array.to_list a) in
  let seen = Array.fold_left (fun l x -> if List.memq x l then l else x :: l) [] a in
  if List.length unique <> List.length seen then wrong "sort_uniq: %d, not %d" (List.length unique) (List.length seen);
  if not (List.for_all (fun x -> List.mem x unique && List.assoc x (List.map (fun y -> (y, 1)) unique) = 1) seen) then
    wrong "List.mem"

(* --- hashing -------------------------------------------------------------------------------------------------------
   *)

let hash c =
  let i = pattern c in
  let h = Hashtbl.hash (foreign i) in
  let in_list () = Hashtbl.hash [Obj.repr "a"; foreign i; Obj.repr 3; foreign i] in
  let l = in_list () and s = Hashtbl.seeded_hash_param 100 200 7 (foreign i, Some (foreign i)) in
  if int c 50 = 0 then Gc.minor ();
  if h <> Hashtbl.hash (foreign i) || l <> in_list () || s <> Hashtbl.seeded_hash_param 100 200 7
    (foreign i, Some (foreign i)) then
    wrong "hash of %s changes" (show (Foreign i));
  if Hashtbl.hash [Obj.repr "a"; foreign i; Obj.repr 4; foreign i] = l then wrong "hash stops at %s" (show (Foreign i))

(* --- Obj -----------------------------------------------------------------------------------------------------------
   *)

let obj_tag c =
  let i = pattern c in
  let expected = if unaligned i then Obj.unaligned_tag else Obj.out_of_heap_tag in
  if Obj.is_int (foreign i) then wrong "%s is an int" (show (Foreign i));
  let t = Obj.tag (foreign i) in
  if t <> expected then wrong "tag of %s is %d, not %d" (show (Foreign i)) t expected;
  if Obj.tag (Obj.repr compare_foreign) < 246 || Obj.tag (Obj.repr "constant") <> Obj.string_tag
    || Obj.tag (Obj.repr (1, ref 2)) <> 0 then
    wrong "tag of a block of OCaml's"

let reachable_words c =
  let n = 1 + int c 400 in
  let a = Array.init n (fun _ -> foreign (pattern c)) in
  if bool c then Gc.minor ();
  let words = Obj.reachable_words (Obj.repr a) in
  if words <> n + 1 then wrong "reachable_words of an array of %d foreign pointers is %d" n words;
  let words = Obj.reachable_words (Obj.repr (ref (ref a.(0)))) in
  if words <> 4 then wrong "reachable_words of a ref of a ref is %d" words

(* --- marshalling ---------------------------------------------------------------------------------------------------
   *)

let marshal c =
  let flags = match int c 4 with 0 -> [] | 1 -> [Marshal.No_sharing] | 2 -> [Marshal.Closures]
    | _ -> [Marshal.Closures; Marshal.No_sharing] in
  let i = pattern c in
  let v = foreign i in
  let data : Obj.t =
    match int c 6 with
    | 0 -> Obj.repr v | 1 -> Obj.repr (1, v, "x") | 2 -> Obj.repr (List.init 1000 (fun i ->
      if i = 900 then v else Obj.repr i))
    | 3 -> let f () = v in Obj.repr f
    | 4 -> let l = lazy (Sys.opaque_identity v) in if bool c then ignore (Lazy.force l); Obj.repr l
    | _ -> Obj.repr (Array.make 300 v) in
  let write () =
    match int c 3 with
    | 0 -> ignore (Marshal.to_string data flags)
    | 1 -> ignore (Marshal.to_buffer (Bytes.create 100) 0 100 data flags)
    | _ -> ignore (Marshal.to_bytes data flags) in
  (* With Closures, 4.14 can write the address of a piece of OCaml code. *)
  (match write () with
   | () -> if not (List.mem Marshal.Closures flags) then wrong "marshalled %s" (show (Foreign i))
   | exception (Invalid_argument _ | Failure _) -> ());
  let plain = (1, "two", [3.; 4.], Some [| "five" |]) in
  if Marshal.from_string (Marshal.to_string plain []) 0 <> plain then
    wrong "marshalling is broken after %s" (show (Foreign i))

(* --- others --------------------------------------------------------------------------------------------------------
   *)

let finalise_foreign c =
  let i = pattern c in
  (match Gc.finalise ignore (foreign i) with
   | () -> wrong "Gc.finalise takes %s" (show (Foreign i))
   | exception Invalid_argument _ -> ());
  match Gc.finalise_last ignore (foreign i) with
  | () -> wrong "Gc.finalise_last takes %s" (show (Foreign i))
  | exception Invalid_argument _ -> ()

exception E1 of Obj.t
exception E3 of Obj.t * string * Obj.t
let printexc c =
  let i = pattern c and j = pattern c in
  let has s part = let n = String.length part in
  let rec go k = k + n <= String.length s && (String.sub s k n = part || go (k + 1)) in go 0 in
  let try_ e expected =
    List.iter (fun s -> if not (has s expected) then wrong "exception is printed as %s" s) [Printexc.to_string e;
        format_exception e] in
  try_ (E1 (foreign i)) "E1";
  try_ (E3 (foreign i, "text", foreign j)) "\"text\""

let lazy_of_foreign c =
  let i = pattern c in
  let v = foreign i in
  let l = Lazy.from_val v in
  if not (same (Lazy.force_val l) i && Lazy.is_val l) then wrong "from_val of %s" (show (Foreign i));
  let l = lazy (Sys.opaque_identity v) in
  if not (same (Lazy.force l) i && same (Lazy.force_val l) i) then wrong "force of %s" (show (Foreign i));
  let l = Lazy.map (fun x -> (x, x)) l in
  if not (same (fst (Lazy.force l)) i) then wrong "Lazy.map over %s" (show (Foreign i));
  let s = Seq.memoize (Seq.cons v (Seq.return v)) in
  Seq.iter (fun x -> if not (same x i) then wrong "Seq.memoize of %s" (show (Foreign i))) s

(* Foreign pointers in registers and stack slots over allocation and collections. *)
let frames c =
  let i = pattern c and j = pattern c and k = pattern c in
  let rec f n a b d =
    if n = 0 then (if int c 20 = 0 then Gc.minor (); 0)
    else begin
      let r = Sys.opaque_identity (ref a) and s = Sys.opaque_identity [| b; d |] in
      let m = f (n - 1) b d a in
      if not (!r == a && s.(0) == b && s.(1) == d) then wrong "frames";
      m + 1
    end in
  let a = foreign i and b = foreign j and d = foreign k in
  if f 50 a b d <> 50 || not (same a i && same b j && same d k) then wrong "frames: a variable has changed"

let locals_in_c c =
  let i = pattern c and j = pattern c in
  let work n =
    for k = 1 to n do
      ignore (Sys.opaque_identity (Array.make 20 k));
      if k mod 16 = 0 then Gc.minor ();
      if k mod 150 = 0 then Gc.full_major ()
    done in
  if not (locals work (foreign i) (foreign j) (int c 300)) then wrong "a local root in C has changed"

(* Passed through the stack of an exception handler, and as a result. *)
exception Carry of Obj.t
let raise_ c =
  let i = pattern c in
  let f n = if n >= 0 then (ignore (Sys.opaque_identity (Array.make 300 n)); raise (Carry (foreign i))) in
  (try f (int c 3) with Carry v -> if int c 20 = 0 then Gc.full_major ();
     if not (same v i) then wrong "an exception's argument has changed");
  match Fun.protect ~finally:(fun () -> ignore (Sys.opaque_identity (ref 1))) (fun () -> foreign i) with
  | v -> if not (same v i) then wrong "a result has changed"

(* Much marking of nothing but foreign pointers; more than the mark stack takes at once. *)
let many c =
  let n = 20_000 in
  let i = pattern c and j = pattern c in
  let a = Array.init n (fun k -> if k land 1 = 0 then foreign i else Obj.repr (foreign j, ref k)) in
  ignore (Gc.major_slice 0);
  Array.iteri (fun k v ->
    if not (if k land 1 = 0 then same v i else (let x, r = (Obj.obj v : Obj.t * int ref) in same x j && !r = k)) then
      wrong "many") a

(* A tracker that follows samples with foreign pointers. *)
let memprof c =
  let i = pattern c and j = pattern c and k = pattern c in
  let bad = ref None in
  let expect n v = if not (same v n) then bad := Some (show (Foreign n)) in
  let tracker = {
    Gc.Memprof.alloc_minor = (fun _ -> Some (foreign i));
    alloc_major = (fun _ -> Some (foreign j));
    promote = (fun v -> expect i v; Some (foreign k));
    dealloc_minor = expect i;
    dealloc_major = (fun v -> if not (same v j || same v k) then bad := Some "major") } in
  (match Gc.Memprof.start ~sampling_rate:(if bool c then 0.01 else 0.3) ~callstack_size:3 tracker with
   | exception Failure _ -> ()
   | _ ->
     let keep = Array.init 50 (fun n ->
       ignore (Sys.opaque_identity (Bytes.create (n * 20))); Array.make (n * 8) (foreign i)) in
     if bool c then Gc.minor ();
     ignore (Gc.major_slice 0);
     Array.iter (Array.iter (expect i)) (Sys.opaque_identity keep);
     Gc.Memprof.stop ());
  match !bad with Some s -> wrong "memprof: %s has changed" s | None -> ()

(* To a domain in a closure, and back as its result or as an exception. *)
let domain_result c =
  let i = pattern c and j = pattern c in
  let v = foreign i and w = foreign j in
  let fails = bool c in
  let work () =
    let r = ref w in
    Gc.minor (); ignore (Gc.major_slice 0);
    if not (same v i && same !r j) then wrong "a variable in a new domain has changed";
    if fails then raise (Carry v);
    (v, r) in
  match Par.elsewhere work with
  | x, r -> if not (same x i && same !r j) then wrong "the result of a domain has changed"
  | exception Carry x -> if not (same x i) then wrong "the exception of a domain has changed"

let all = [
  "compare-foreign", compare_foreign; "compare-with-int", compare_with_int; "compare-with-block", compare_with_block;
  "compare-structures", compare_structures; "sort", sort; "hash", hash; "obj-tag", obj_tag;
  "reachable-words", reachable_words;
  "marshal", marshal; "finalise-foreign", finalise_foreign; "printexc", printexc; "lazy-of-foreign", lazy_of_foreign;
  "frames", frames;
  "locals-in-c", locals_in_c; "raise", raise_; "many", many ]
let main_only = [ "memprof", memprof; "domain-result", domain_result ]
