(* SPDX-License-Identifier: MIT *)
(* Limits, and domains. *)
open Outheap_region
open Region_checks

(* The errors of a copy and of an image that C code makes, as numbers: of the one, and of the other times 100. *)
external kinds_in_c : 'a -> int -> string -> int = "region_c_kinds"

let many () =
  let all = Array.make 32_768 None in
  let rec fill i = match copy [ i ] with
    | Ok r when i < 32_768 -> all.(i) <- Some r; fill (i + 1)
    | Ok _ -> Ok i
    | Error e -> if i = 32_768 then Error e else (Printf.printf "after %d: %s\n%!" i (error_to_string e); Ok i) in
  let r = fill (stats ()).live in
  is_error "too many" (function Error Too_many -> true | _ -> false) r;
  check "all are there" (Array.for_all (function None -> true | Some r -> get r <> []) all);
  if can_delete then (
    Array.fill all 0 32_768 None;
    majors 4;
    check "room again" ((stats ()).live < 10);
    check "copies again" (get (ok "copy" (copy [ 1 ])) = [ 1 ]))

(* More than a chunk of 256 MiB, and a pointer to the last part alone. *)
let large () =
  let tail = [ "the last part" ] in
  let before = (stats ()).unused in
  let kept = ref [] in
  with_ (fun () ->
      let r = ok "copy" (copy (Array.init 45 (fun i -> Some (String.make 8_000_000 (Char.chr (48 + i)))), tail)) in
      let a, l = get r in
      Array.iteri (fun i s -> check "string" ((Option.get s).[7_999_999] = Char.chr (48 + i))) a;
      kept := l);
  majors 4;
  check "held by its last part" ((stats ()).unused = before && !kept = tail);
  if can_delete then (
    kept := [];
    majors 4;
    check "ends" ((stats ()).unused = before + 1))

(* Where a program can be when it copies: finalisers, signal handlers, threads, at exit. *)
let places () =
  let copied = ref 0 in
  let try_copy () = match copy (List.init 100 string_of_int) with
    | Ok r -> if List.length (get r) = 100 then incr copied
    | Error e -> check (error_to_string e) false in
  for _ = 1 to 20 do Gc.finalise (fun _ -> try_copy ()) (ref 0) done;
  majors 2;
  check "finalisers" (!copied = 20);
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> try_copy ()));
  for _ = 1 to 10 do Unix.kill (Unix.getpid ()) Sys.sigusr1; ignore (opaque (ref 0)) done;
  majors 1;
  check "signal handlers" (!copied > 20);
  (* a region whose only handle is in a finaliser that gives the value out again *)
  let saved = ref [] in
  with_ (fun () ->
      let r = ok "copy" (copy [ "resurrected" ]) in
      Gc.finalise (fun r -> saved := get r) (ref r |> fun x -> ignore (opaque x); r));
  majors 6;
  check "resurrected" (!saved = [ "resurrected" ] || !saved = []);
  majors 3;
  if !saved <> [] then check "still there" (!saved = [ "resurrected" ]);
  (* what a region held, within another copy *)
  let inner = ok "copy" (copy [ "inner" ]) in
  let outer = ok "copy" (copy (get inner, get inner)) in
  check "closed" (not (contains (region inner) (Obj.repr (fst (get outer)))) && fst (get outer) == snd (get outer));
  if can_delete then (
    let v = get inner in
    ok "revoke" (revoke (region inner));
    is_error "copy of what was revoked"
      (function Error (Refused { kind = "foreign pointer"; path = ".0"; _ }) -> true | _ -> false)
      (copy (Some v)));
  at_exit try_copy

(* Something else is mapped at the addresses of regions. *)
let obstacles () =
  let chunk = 1 lsl 28 and first = 1 lsl 44 in
  for i = 0 to 40 do
    if i mod 10 <> 7 then ignore (occupy ((first + (i * chunk)) / 2) 4096)
  done;
  let all = List.init 60 (fun i -> (i, ok "copy" (copy (string_of_int i)))) in
  List.iter (fun (i, r) -> check "copied" (get r = string_of_int i)) all;
  let r = ok "large copy" (copy (Array.init 45 (fun i -> String.make 8_000_000 (Char.chr (48 + i))))) in
  check "large" ((get r).(44).[5] = 'L' || (get r).(44).[5] = Char.chr 92)

(* In a process with little address space or memory: ulimit -v *)
let little () =
  let l = List.init 6_000_000 (fun i -> (i, string_of_int i)) in
  is_error "no memory" (function Error (No_memory | Too_many) -> true | _ -> false) (copy l);
  check "source" (List.fold_left (fun n (i, s) -> if int_of_string s = i then n + 1 else n) 0 l = 6_000_000);
  majors 1;
  check "small ones" (get (ok "copy" (copy [ 1 ])) = [ 1 ])

(* --- regions that are dropped, without anybody who runs the collector --------------------------------------------- *)

(* More of them than there may be at a time. *)
let dropped () =
  let most = ref 0 in
  if can_delete then (
    for i = 1 to 100_000 do
      ignore (opaque (ok "copy" (copy [ i ])));
      if i land 255 = 0 then (let s = stats () in most := max !most (s.live + s.resting))
    done;
    check (Printf.sprintf "%d at a time" !most) (!most < 32_768))

(* 4 GB of them in bounded memory. *)
let dropped_memory () =
  let piece = Bytes.make 800_000 'x' in
  if can_delete then (
    for i = 1 to 5_000 do
      Bytes.set piece 5 (Char.chr (i land 255));
      let r = ok "copy" (copy piece) in
      check "contents" (Bytes.get (get r) 5 = Char.chr (i land 255))
    done;
    let peak = proc "/proc/self/status" "VmHWM:" in
    check (Printf.sprintf "at most %d KB" peak) (peak < 400_000))

(* Mappings of one image that are written to: each is a region, and two mappings of the system. *)
let dropped_maps () =
  if can_delete then (
    let path = Filename.temp_file "region" ".image" and s = schema ~name:"dropped" ~version:1 in
    ok "save" (save s ~path (List.init 10 (fun i -> Some i)));
    for _ = 1 to 40_000 do
      let r = ok "map" (map s ~path ~writes:`Track ()) in
      check "contents" (List.length (get r) = 10)
    done;
    (* the same region a thousand times *)
    majors 4;
    let all = List.init 1000 (fun _ -> ok "map" (map s ~path ())) in
    check "one region" ((stats ()).live = 1);
    check "contents" (List.for_all (fun r -> get r == get (List.hd all)) all);
    Sys.remove path)

(* The system has no mappings left: two for each image that is written to. Those that are dropped end in time. *)
let no_mappings () =
  if can_delete then (
    let path = Filename.temp_file "region" ".image" and s = schema ~name:"mappings" ~version:1 in
    let value = List.init 10 (fun i -> Some i) in
    ok "save" (save s ~path value);
    let map () = map s ~path ~writes:`Track () in
    let limited = few_mappings 20 in
    check "mappings without a limit" (limited || lines "/proc/self/maps" > 200_000);
    if limited then (
      for _ = 1 to 100 do ignore (opaque (ok "dropped" (map ()))) done;
      let rec hold held = match map () with
        | Ok r when List.length held < 20 -> hold (r :: held)
        | r -> is_error "held" (function Error No_memory -> true | _ -> false) r; held in
      let held = hold [] in
      check "contents" (List.for_all (fun r -> get r = value) held));
    check "given back" (few_mappings (-1));
    check "and again" (get (ok "map" (map ())) = value);
    Sys.remove path)

(* At the limit, a copy collects before it gives up: whether it was the handles that kept regions, or values. *)
let at_limit () =
  if can_delete then (
    majors 4;
    let fill f = with_ (fun () -> Array.init (32_768 - (stats ()).live - (stats ()).resting) f) in
    let one i = ok "copy" (copy [ i ]) in
    let roots = ref (fill one) in
    roots := [||];
    check "contents" (get (one 1) = [ 1 ]);
    majors 4;
    let values = ref (fill (fun i -> get (one i))) in
    is_error "values" (function Error Too_many -> true | _ -> false) (copy [ 0 ]);
    check "C code" (kinds_in_c [ 0 ] 0 "/nowhere/x" mod 100 = 2);
    values := Array.sub !values 0 30_000;
    check "contents" (get (one 2) = [ 2 ]);
    check "the others" (!values.(29_999) = [ 29_999 ]))

(* In a process with little address space: ulimit -v. One large copy after another, and images of them. *)
let dropped_little () =
  if can_delete then (
    let path = Filename.temp_file "region" ".image" and s = schema ~name:"dropped" ~version:1 in
    let piece = Array.init 20 (fun i -> String.make 7_000_000 (Char.chr (65 + i))) in
    for _ = 1 to 20 do
      let r = ok "copy" (copy piece) in
      check "contents" ((get r).(19).[77] = 'T')
    done;
    ok "save" (save s ~path piece);
    for _ = 1 to 20 do
      let r = ok "map" (map s ~path ~writes:`Track ()) in
      check "contents" ((get r).(19).[77] = 'T')
    done;
    Sys.remove path)

(* A million copies that are dropped. *)
let million () =
  if can_delete then (
    let peak () = proc "/proc/self/status" "VmHWM:" in
    let round n = for i = 1 to n do ignore (opaque (ok "copy" (copy [ i; i + 1 ]))) done in
    round 100_000;
    let before = peak () in
    round 900_000;
    check (Printf.sprintf "%d KB, then %d" before (peak ())) (peak () < before + (before / 5) + 20_000);
    check "mappings" (lines "/proc/self/maps" < 33_000))

(* --- questions ---------------------------------------------------------------------------------------------------- *)

let inside v = is_in_region (Obj.repr v)

(* It takes no longer with many regions. *)
let questions_time () =
  let first = ok "copy" (copy [ 1 ]) in
  let time () =
    let v = get first in
    let once () =
      let t = Unix.gettimeofday () in
      for _ = 1 to 1000 do if not (inside (opaque v)) then check "inside" false done;
      Unix.gettimeofday () -. t in
    List.fold_left min infinity (List.init 9 (fun _ -> once ())) in
  let few = time () in
  let all = Array.init 2_000 (fun i -> ok "copy" (copy [ i ])) in
  let many = time () in
  check (Printf.sprintf "1000 of them: %g s, with 2,000 regions %g s" few many) (many < (10. *. few) +. 1e-4);
  ignore (opaque all)

let questions () =
  let here = ref [ opaque 1 ] in
  check "heap" (not (inside !here) && not (inside 3) && not (inside "static"));
  (* ThreadSanitizer has no room for more than a chunk *)
  let strings = if Sys.getenv_opt "TSAN_OPTIONS" = None then 45 else 5 in
  let of_length i = String.make 8_000_000 (Char.chr (48 + i)) in
  let large = ok "copy" (copy (Array.init strings of_length, [ !here ])) in
  let all_bytes = strings * 8_000_000 in
  let strings, last = get large in
  check "large" (inside strings && Array.for_all inside strings && inside last && inside (List.hd last));
  let all = Array.init 2_000 (fun i -> ok "copy" (copy [ i ])) in
  check "all" (Array.for_all (fun r -> inside (get r)) all);
  if can_delete then (
    let v = get all.(5) in
    ok "revoke" (revoke (region all.(5)));
    check "revoked" (not (inside v) && (stats ()).revoked >= 1);
    check "its neighbours" (inside (get all.(4)) && inside (get all.(6)));
    ok "delete" (delete (region all.(7)));
    check "its neighbours" (inside (get all.(6)) && inside (get all.(8)));
    let s = stats () in
    let live = Array.fold_left (fun n r -> match get r with _ -> n + 1 | exception Deleted -> n) 0 all in
    check (Printf.sprintf "%d live of %d" s.live live) (s.live >= live && s.live <= live + 3);
    check "bytes" (s.live_bytes >= all_bytes && s.live_bytes < all_bytes + 50_000 + (2_100 * 16_384)));
  check "large" (inside (snd (get large)))

let domains rounds =
  let before = lines "/proc/self/maps" in
  let memory = ref 0 in
  let work me () =
    let held = ref [] in
    for i = 1 to rounds do
      let v = List.init (1 + (i mod 50)) (fun j -> Some (string_of_int ((i * j) + me))) in
      let r = ok "copy" (copy v) in
      let w = get r in
      if v <> w then check "same" false;
      if i mod 3 = 0 then held := w;
      if List.exists (fun s -> s = None) !held then check "held" false;
      if i mod 16 = me then
        match delete (region r) with
        | Ok () -> ( match get r with _ -> check "deleted" false | exception Deleted -> ())
        | Error (In_use _ | Unsupported _) -> if get r <> v then check "still there" false
        | Error e -> check (error_to_string e) false
    done;
    0
  in
  let others = List.init (Region_domains.recommended - 1) (fun i -> Region_domains.spawn (work (i + 1))) in
  ignore (work 0 ());
  List.iter (fun join -> ignore (join ())) others;
  majors 4;
  memory := proc "/proc/self/status" "VmRSS:";
  let s = stats () in
  if can_delete then (
    check (Printf.sprintf "%d live, %d resting" s.live s.resting) (s.live = 0 && s.resting = 0);
    let after = lines "/proc/self/maps" in
    (* ThreadSanitizer has more of its own with each thread *)
    if Sys.getenv_opt "TSAN_OPTIONS" = None then
      check (Printf.sprintf "mappings: %d, before %d" after before) (after < before + 200);
    check (Printf.sprintf "resident: %d KB" !memory) (!memory < 400_000))

(* Domains change the source while it is copied: the copy is that of a moment. *)
let beside () =
  if Region_domains.recommended > 1 then (
    let shared = Array.init 1000 (fun i -> ref i) in
    let stop = Atomic.make false in
    let others =
      List.init 3 (fun me ->
          Region_domains.spawn (fun () ->
              let n = ref 0 in
              while not (Atomic.get stop) do
                incr n;
                (* each its own elements: stores of several domains to one are a race of the program *)
                shared.((!n * 31 mod 333 * 3) + me) <- ref (!n + me);
                ignore (opaque (List.init 10 (fun i -> i)))
              done;
              !n))
    in
    for _ = 1 to 60 do
      let r = ok "copy" (copy shared) in
      check "all are there" (Array.for_all (fun x -> !x >= 0) (get r))
    done;
    Atomic.set stop true;
    List.iter (fun join -> check "ran" (join () > 0)) others)
