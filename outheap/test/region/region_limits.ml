(* SPDX-License-Identifier: MIT *)
(* Limits, and domains. *)
open Outheap_region
open Region_checks

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

(* Something else lies where regions would be placed. *)
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

(* Copies beside domains that change the source: what is copied is that of a moment. *)
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
                (* moves one from a place to another: the sum stays *)
                shared.((!n * 31) mod 1000) <- ref (!n + me);
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
