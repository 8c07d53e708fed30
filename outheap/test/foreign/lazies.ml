(* SPDX-License-Identifier: MIT *)
(* Lazy values that are a foreign pointer themselves, not a block around one: the compiler's code for Lazy.force asks
   the runtime for a tag, and jumps by it. And what Obj.tag shows, however its result is used. *)

let hide = Sys.opaque_identity
let forced = ref 0
let eighth (_, _, _, _, _, _, _, x) = x

(* The result of each way to force must be the pointer. *)
let ways : (string * (Obj.t Lazy.t -> Obj.t)) list =
  [ "Lazy.force", (fun l -> Lazy.force l);
    "as a function", (fun l -> (hide Lazy.force) l);
    "a pattern", (fun l -> match l with lazy p -> p);
    "Lazy.force_val", Lazy.force_val;
    "not in tail position", (fun l ->
      let p = Lazy.force l in
      incr forced;
      p);
    "twice", (fun l ->
      let p = Lazy.force l in
      let q = Lazy.force l in
      if p == q then p else Obj.repr 0);
    "in a loop", (fun l ->
      let p = ref (Obj.repr 0) in
      for _ = 1 to 3 do p := Lazy.force l done;
      !p);
    "in a handler", (fun l -> try Lazy.force l with Not_found -> Obj.repr 0);
    "with many variables", (fun l ->
      let a = !forced and b = !forced + 1 and c = !forced + 2 and d = !forced + 3 and e = !forced + 4 in
      let f = !forced + 5 and g = !forced + 6 and h = !forced + 7 and x = float !forced in
      let p = Lazy.force l in
      forced := a + b + c + d + e + f + g + h + int_of_float x;
      eighth (a, b, c, d, e, f, g, p));
    "part of a pattern", (fun l -> match (l, !forced) with lazy p, 0 -> p | lazy p, 1 -> p | lazy p, _ -> p);
    "in a closure", (fun l -> (hide (fun () -> Lazy.force l)) ());
    "forced by another", (fun l -> Lazy.force (hide (lazy (Lazy.force l)))) ]

(* What Lazy and the compiler make of the pointer. A variable of a type that cannot be lazy is its own lazy value. *)
let lazies p : (string * Obj.t Lazy.t) list =
  let typed : string = Obj.obj p in
  [ "Lazy.from_val", Lazy.from_val p;
    "Lazy.map_val", Lazy.map_val (fun _ -> p) (Lazy.from_val (Obj.repr 0));
    "map_val of it", Lazy.map_val hide (Lazy.from_val p);
    "Lazy.map", Lazy.map (fun _ -> p) (Lazy.from_val p);
    "a variable", (Obj.magic (hide (lazy typed)) : Obj.t Lazy.t) ]

let all p =
  List.iter (fun (source, l) ->
    List.iter (fun (way, force) ->
      let l = hide l in
      if force l != p then Printf.printf "%s, %s: another value\n%!" source way;
      if not (Lazy.is_val l) then Printf.printf "%s: no value after %s\n%!" source way) ways) (lazies p)

let word n = match n with 1001 -> "foreign" | 1002 -> "unaligned" | n -> string_of_int n

(* Obj.tag, its result used in several ways; all must see the same. *)
let tags p =
  let cell = ref 0 and many = Array.make 2 0 in
  let by_case p = match Obj.tag p with
    | 0 -> 0 | 1 -> 1 | 2 -> 2 | 3 -> 3 | 244 -> 244 | 246 -> 246 | 250 -> 250 | 1001 -> 1001 | 1002 -> 1002 | _ -> -1
  in
  let tag p = Obj.tag p in
  cell := Obj.tag p;
  many.(1) <- Obj.tag p;
  let kept = Obj.tag p in
  Gc.minor ();
  let out = hide 1001 and unaligned = hide 1002 in
  let compared = if Obj.tag p = Obj.out_of_heap_tag then 1001 else if Obj.tag p = Obj.unaligned_tag then 1002 else 0 in
  let beside = if Obj.tag p = out then 1001 else if Obj.tag p = unaligned then 1002 else 0 in
  let first = Obj.tag p in
  let second = Obj.tag (Obj.repr first) in
  let shown =
    [ !cell; many.(1); kept; compared; beside; (hide tag) p; (hide Obj.tag) p; List.hd (List.map Obj.tag [ p ]);
      (fst (Obj.tag p, second)); by_case p; int_of_string (Printf.sprintf "%d" (Obj.tag p)); Obj.tag p + 1 - hide 1;
      (if Obj.tag p > 255 then first else kept) ]
  in
  String.concat " " (List.sort_uniq compare (List.map word shown))

let run p =
  all p;
  Printf.printf "tag: %s\nforced: yes\n%!" (tags p)
