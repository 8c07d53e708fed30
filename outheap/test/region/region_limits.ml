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
