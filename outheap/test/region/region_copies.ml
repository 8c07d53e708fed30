(* SPDX-License-Identifier: MIT *)
(* Copies: what they hold, and what is refused. *)
open Outheap_region
open Region_checks

let random () =
  let words = ref 0 in
  for seed = 1 to 400 do
    let v = Region_values.make seed in
    words := !words + Obj.reachable_words (Obj.repr v);
    if seed mod 3 = 0 then Gc.full_major ();
    let before = Marshal.to_string v [ Marshal.Closures ] in
    let r = ok "copy" (copy v) in
    check (Printf.sprintf "source of %d" seed) (Marshal.to_string v [ Marshal.Closures ] = before);
    (match Region_values.same (Obj.repr v) (Obj.repr (get r)) with
    | None -> ()
    | Some what -> check (Printf.sprintf "copy of %d: %s" seed what) false);
    check "contains" (contains (region r) (Obj.repr (get r)) && not (contains (region r) (Obj.repr v)));
    let m = ok "copy `Max" (copy ~sharing:`Max v) in
    (match Region_values.same ~exact:false (Obj.repr v) (Obj.repr (get m)) with
    | None -> ()
    | Some what -> check (Printf.sprintf "shared copy of %d: %s" seed what) false);
    check "smaller" ((info (region m)).words <= (info (region r)).words);
    let again = ok "copy of a copy" (copy (get m)) in
    match Region_values.same (Obj.repr (get m)) (Obj.repr (get again)) with
    | None ->
        (* but for the padding of bigarrays *)
        check "as large" (abs ((info (region m)).words - (info (region again)).words) < 64)
    | Some what -> check (Printf.sprintf "copy of a copy of %d: %s" seed what) false
  done;
  check (Printf.sprintf "large enough: %d words" !words) (!words > 100_000)

(* Maximal sharing is maximal: exactly the words of what is not equal are left. *)
type term = Leaf of int | Name of string | Float of float | Node of term array | Pair of term * term

let merged () =
  for seed = 1 to 300 do
    Random.init seed;
    let made = Array.make (2 + Random.int 2000) (Leaf 0) and alike = 1 + Random.int 50 in
    for i = 0 to Array.length made - 1 do
      (* near ones, so that terms are deep, or any; most are used several times *)
      let earlier () =
        if i = 0 then Leaf 1 else made.(if Random.bool () then i - 1 - Random.int (min i 10) else Random.int i)
      in
      made.(i) <-
        (match Random.int 9 with
        | 0 -> Leaf (Random.int alike)
        | 1 -> Name (String.make (Random.int 20) (Char.chr (97 + Random.int (min alike 26))))
        | 2 -> Float (float (Random.int alike))
        | 3 | 4 -> Node (Array.init (Random.int 5) (fun _ -> earlier ()))
        | 5 | 6 | 7 when i > 0 -> ( (* an equal one, made again *)
            match earlier () with
            | Leaf n -> Leaf n
            | Name s -> Name (s ^ "")
            | Float x -> Float (opaque x +. 0.)
            | Node a -> Node (Array.copy a)
            | Pair (a, b) -> Pair (a, b))
        | _ -> Pair (earlier (), earlier ()))
    done;
    (* what is equal gets one number *)
    let numbers = Hashtbl.create 100 and words = ref 0 and done_ = Hashtbl.create 100 in
    let block key size =
      match Hashtbl.find_opt numbers key with
      | Some n -> n
      | None ->
          let n = Hashtbl.length numbers in
          Hashtbl.add numbers key n;
          words := !words + 1 + size;
          n
    in
    let string s = block (`String s) ((String.length s / 8) + 1) in
    let rec number t =
      match t with
      | Leaf i -> block (`Leaf i) 1
      | Name s -> block (`Name (string s)) 1
      | Float x -> block (`Float (block (`Number x) 1)) 1
      | Node [||] -> block (`Node (block (`Array []) 0)) 1
      | Node a ->
          let fields = Array.to_list (Array.map again a) in
          block (`Node (block (`Array fields) (List.length fields))) 1
      | Pair (a, b) -> let a = again a in block (`Pair (a, again b)) 2
    and again t =
      (* by address: nothing moves while all is in the major heap, and nobody compacts it *)
      match List.assq_opt t (Hashtbl.find_all done_ (Hashtbl.hash_param 5 20 t)) with
      | Some n -> n
      | None ->
          let n = number t in
          Hashtbl.add done_ (Hashtbl.hash_param 5 20 t) (t, n);
          n
    in
    ignore (block `Root (Array.length made));
    Array.iter (fun t -> ignore (again t)) made;
    let m = ok "copy `Max" (copy ~sharing:`Max made) in
    let found = (info (region m)).words - 1 (* the end *) in
    if found <> !words then check (Printf.sprintf "seed %d: %d words, not %d" seed found !words) false;
    match Region_values.same ~exact:false (Obj.repr made) (Obj.repr (get m)) with
    | None -> ()
    | Some what -> check (Printf.sprintf "seed %d: %s" seed what) false
  done

let deep () =
  let n = 2_000_000 in
  let l = List.init n (fun i -> i) in
  let r = ok "list" (copy l) in
  check "list" (List.compare_lengths l (get r) = 0 && List.fold_left ( + ) 0 (get r) = n * (n - 1) / 2);
  check "words" ((info (region r)).words = (3 * n) + 1);
  let rec grow n t = if n = 0 then t else grow (n - 1) (if n land 1 = 0 then `L (t, n) else `R (n, t)) in
  let rec depth n = function `E -> n | `L (t, _) -> depth (n + 1) t | `R (_, t) -> depth (n + 1) t in
  let t = ok "tree" (copy ~sharing:`Max (grow n `E)) in
  check "tree" (depth 0 (get t) = n);
  let a = ok "array" (copy (Array.init 1_000_000 (fun i -> Some (i land 7)))) in
  let m = ok "array" (copy ~sharing:`Max (get a)) in
  check "merged" ((info (region m)).words = 1 + 1_000_000 + (8 * 2) + 1 && get m = get a);
  let s = String.make 50_000_000 'x' in
  check "string" (get (ok "string" (copy s)) = s)

let kinds () =
  check "immediate" (get (ok "copy" (copy 42)) = 42 && get (ok "copy" (copy None)) = None);
  check "empty array" (Array.length (get (ok "copy" (copy [||]))) = 0);
  let l = lazy (opaque 5) and p = lazy (opaque (3, "x")) in
  ignore (Lazy.force l, Lazy.force p);
  let l', p' = get (ok "lazy" (copy (l, p))) in
  check "forced" (Lazy.force l' = 5 && Lazy.force p' = (3, "x"));
  let f = lazy (opaque 2.5) in
  ignore (Lazy.force f);
  check "forced float" (Lazy.force (get (ok "lazy" (copy f))) = 2.5);
  if Sys.backend_type = Native then (match get (ok "exn" (copy [ Not_found; Failure "x"; Division_by_zero ])) with
  | [ Not_found; Failure _; Division_by_zero ] -> ()
  | _ -> check "predefined exceptions match" false);
  check "register" (register ());
  check "registered" (custom_number (get (ok "custom" (copy (custom true 17)))) = 17);
  let b = Bigarray.(Array2.create int32 fortran_layout 7 9) in
  Bigarray.Array2.fill b 77l;
  b.{3, 4} <- 5l;
  let b' = get (ok "bigarray" (copy b)) in
  b.{3, 4} <- 6l;
  check "bigarray" Bigarray.(Array2.dim1 b' = 7 && b'.{3, 4} = 5l && b'.{7, 9} = 77l);
  let path = Filename.temp_file "region" ".data" in
  let f = Unix.openfile path [ Unix.O_RDWR ] 0o600 in
  let mapped = Bigarray.(array1_of_genarray (Unix.map_file f float64 c_layout true [| 1000 |])) in
  Bigarray.Array1.fill mapped 2.5;
  let part = Bigarray.Array1.sub mapped 100 17 in
  let whole', part' = get (ok "a file's bigarray" (copy (mapped, part))) in
  let images = schema ~name:"file" ~version:1 and image = path ^ ".image" in
  ok "saved" (save images ~path:image (mapped, part));
  Bigarray.Array1.fill mapped 3.5;
  let sum = Bigarray.(fun a -> let s = ref 0. in for i = 0 to Array1.dim a - 1 do s := !s +. a.{i} done; !s) in
  check "a file's bigarray" (sum whole' = 2500. && sum part' = 42.5 && sum mapped = 3500.);
  (let a, b = get (ok "mapped" (map images ~path:image ~verify:`Full ())) in
   check "its image" (sum a = 2500. && sum (Bigarray.Array1.sub b 1 4) = 10.));
  Unix.close f;
  Sys.remove path;
  Sys.remove image;
  let n = opaque 3 in
  let f x = x + n in
  let g = get (ok "closure" (copy ~closures:true (f, [ List.length; (fun l -> n + List.length l) ]))) in
  check "closures" (fst g 4 = 7 && List.map (fun f -> f [ 1; 2 ]) (snd g) = [ 2; 5 ]);
  let rec even x = x = 0 || odd (x - 1 + (n * 0)) and odd x = x <> 0 && even (x - 1 + (n * 0)) in
  let e, o = get (ok "mutually recursive" (copy ~closures:true (even, odd))) in
  check "infix" (e 10 && not (o 10));
  let shared = "shared" in
  let a, b = get (ok "sharing" (copy (shared, shared))) in
  check "sharing" (a == b);
  let a, b = get (ok "Max" (copy ~sharing:`Max (String.make 3 'a', String.make 3 'a'))) in
  check "merged" (a == b);
  check "hash" (Hashtbl.hash (get (ok "copy" (copy [ 1; 2; 3 ]))) = Hashtbl.hash [ 1; 2; 3 ]);
  let v = get (ok "operations" (copy [ (1, "one", [| 1.5 |]); (2, "two", [||]) ])) in
  check "Marshal" ((Marshal.from_string (Marshal.to_string v []) 0 : (int * string * float array) list) = v);
  (* OCaml 4.14 counts the words of its heap only. *)
  let words = Obj.reachable_words (Obj.repr v) in
  check "Obj" (Obj.tag (Obj.repr v) = 0 && if Sys.ocaml_version.[0] = '4' then words = 0 else words > 10);
  if can_delete then (
    match Gc.finalise ignore v with
    | () -> check "Gc.finalise" false
    | exception Invalid_argument _ -> ())

(* What is copied from a region is closed too, whatever its blocks look like: nothing of it leads to the region that it
   was copied from, which may end. *)
let again () =
  let exception Own of int in
  let n = opaque 3 in
  let rec even x = x = 0 || odd (x - 1 + (n * 0)) and odd x = x <> 0 && even (x - 1 + (n * 0)) in
  let o = object val l = [ n; 4 ] method sum k = List.fold_left (fun a x -> a + x + k) 0 l end in
  let make () = (List.init 5 (fun i -> fun x -> x + i + n), (even, odd), o, List.length) in
  let check_all what ((fs, (e, o'), o, length), closed) =
    check (what ^ ": functions") (List.mapi (fun i f -> f i) fs = List.init 5 (fun i -> (2 * i) + n));
    check (what ^ ": mutually recursive") (e 10 && not (o' 10));
    check (what ^ ": object") (o#sum 1 = 9);
    check (what ^ ": static") (Sys.backend_type <> Native || length == List.length);
    List.iter (fun v -> check (what ^ ": is its own") (closed v))
      ([ Obj.repr e; Obj.repr o'; Obj.repr o ] @ List.map Obj.repr fs)
  in
  let first = ok "copy" (copy ~closures:true (make ())) in
  let second = ok "copy of a copy" (copy ~closures:true (get first)) in
  let shared = ok "shared copy of a copy" (copy ~sharing:`Max ~closures:true (get second)) in
  check_all "first" (get first, contains (region first));
  if can_delete then ok "delete" (delete (region first));
  check_all "second" (get second, contains (region second));
  if can_delete then ok "revoke" (revoke (region second));
  check_all "third" (get shared, contains (region shared));
  (* functions that the collector has marked look like static ones to OCaml 4.14 *)
  let kept = Array.make 64 (fun x -> x) in
  for i = 1 to 600 do
    kept.(i land 63) <- (fun x -> x + i + n);
    ignore (opaque (Array.init 400 (fun j -> ref j)));
    if i land 7 = 0 then slice 2000;
    let r = ok "copy" (copy ~closures:true kept) in
    is_error "a constructor of the heap" (function Error (Refused _) -> true | _ -> false) (copy (Own (opaque i)));
    if not (Array.for_all (fun f -> f 1 = 1 || contains (region r) (Obj.repr f)) (get r)) then
      check "a function of the heap stays" false
  done;
  (* lazy values that are not forced are functions, too *)
  match copy ~writes:`Track ~closures:true (List.init 5 (fun i -> lazy (opaque (string_of_int (i + n))))) with
  | Error (Unsupported _) -> ()
  | Error e -> check (error_to_string e) false
  | Ok first ->
      let second = ok "copy of a copy" (copy ~writes:`Track ~closures:true (get first)) in
      ok "delete" (delete (region first));
      check "lazy values" (List.map Lazy.force (get second) = [ "3"; "4"; "5"; "6"; "7" ])

let refused () =
  let refuses what kind identifier path v =
    let before = Marshal.to_string (Obj.reachable_words (Obj.repr v)) [] in
    for _ = 1 to 2 do
      is_error what
        (function
          | Error (Refused r) ->
              if (r.kind, r.identifier, r.path) <> (kind, identifier, path) then
                Printf.printf "%s: %s %S %s\n%!" what r.kind r.identifier r.path;
              (r.kind, r.identifier, r.path) = (kind, identifier, path)
          | _ -> false)
        (copy v)
    done;
    check (what ^ ": source") (Marshal.to_string (Obj.reachable_words (Obj.repr v)) [] = before);
    check (what ^ ": colour") (Obj.is_int (Obj.repr v) || color (Obj.repr v) <> 3 || Obj.tag (Obj.repr v) < 252)
  in
  let n = opaque 1 in
  refuses "root" "closure" "" "" (fun x -> x + n);
  refuses "path" "closure" "" ".2.0.1" (1, 2, ((3, fun x -> x + n), 4));
  refuses "array" "custom" "_chan" ".0[17].0" (Array.init 30 (fun i -> if i = 17 then Some stdout else None), ());
  refuses "lazy" "lazy" "" ".1" (1, lazy (opaque 3 + n));
  refuses "abstract" "abstract" "" ".0" (Some (abstract ()));
  refuses "custom" "custom" "region_test.unknown" ".0" (Some (custom false 3));
  let long = List.init 1000 (fun i -> if i = 999 then Some (fun x -> x + n) else None) in
  refuses "long way" "closure" "" ".1.1.1.1.1.1…(988)….1.1.1.1.1.0.0" long;
  let o = object method m = n end in
  refuses "object" "object" "" ".0" (Some o);
  check "object with closures" ((get (ok "object" (copy ~closures:true o)))#m = n);
  let exception Local of int in
  refuses "exception" "extension constructor" "Region_values.Own" ".0" (Region_values.Own 3);
  is_error "with closures" (function Error (Refused { kind = "extension constructor"; _ }) -> true | _ -> false)
    (copy ~closures:true (Region_values.Own 3));
  let text = Printexc.to_string (Local 1) in
  let name = String.sub text 0 (String.index text '(') in
  refuses "local exception" "extension constructor" name ".0" (Local (opaque 3))
