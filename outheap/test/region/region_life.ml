(* SPDX-License-Identifier: MIT *)
(* How regions end. Parts that need the variant pass at once without it. *)
open Outheap_region
open Region_checks

type holder = { mutable held : string list }

let[@inline never] give () = get (ok "copy" (copy [ String.make 10 'a'; "b" ]))

(* For each way to hold a pointer: the region lives while it is held, and ends after. *)
let holds what hold release =
  let before = unused () in
  with_ (fun () -> hold (give ()));
  majors 4;
  check (what ^ ": held") (unused () = before);
  release ();
  majors 4;
  check (what ^ ": ends") (unused () = before + 1)

let life () =
  if can_delete then (
    let h = { held = [] } in
    holds "field" (fun v -> h.held <- v) (fun () -> h.held <- []);
    let young = ref [] in
    holds "promoted" (fun v -> young := [ v ]) (fun () -> young := []);
    let f = ref ignore in
    holds "closure" (fun v -> f := fun () -> ignore (opaque v)) (fun () -> f := ignore);
    let w = Weak.create 3 in
    holds "weak pointer" (fun v -> Weak.set w 1 (Some v)) (fun () -> Weak.set w 1 None);
    check "weak" (Weak.get w 1 = None);
    let module E = Obj.Ephemeron in
    let e = E.create 1 and key = ref 5 in
    holds "ephemeron's key"
      (fun v -> E.set_key e 0 (Obj.repr v); E.set_data e (Obj.repr 3))
      (fun () -> E.unset_key e 0);
    holds "ephemeron's data"
      (fun v -> E.set_key e 0 (Obj.repr key); E.set_data e (Obj.repr v))
      (fun () -> E.unset_data e);
    ignore (opaque key);
    let t = Hashtbl.create 3 in
    holds "hash table" (fun v -> Hashtbl.replace t 1 v) (fun () -> Hashtbl.reset t);
    let a = Atomic.make [] in
    holds "atomic" (fun v -> Atomic.set a v) (fun () -> Atomic.set a []);
    (* a handle alone *)
    let before = unused () in
    let r = ref (Some (ok "copy" (copy "text"))) in
    majors 4;
    check "handle" (unused () = before && get (Option.get !r) = "text");
    r := None;
    majors 4;
    check "no handle" (unused () = before + 1);
    (* overwritten while marking: what was read before is kept *)
    let before = unused () in
    h.held <- give ();
    let rec churn n kept =
      if n = 0 then kept
      else (
        ignore (opaque (Array.make 300 n));
        if n = 5000 then (
          let v = h.held in
          h.held <- [];
          churn (n - 1) v)
        else churn (n - 1) kept)
    in
    let kept = ref (churn 10000 []) in
    majors 3;
    check "kept in a root" (unused () = before && List.length !kept = 2);
    kept := [];
    majors 4;
    check "and then ends" (unused () = before + 1))

(* Parts of bigarrays are blocks of the heap that hold an address in the region, and may have its functions. *)
let parts () =
  let open Bigarray in
  let path = Filename.temp_file "region" ".image" in
  let s = schema ~name:"parts" ~version:1 in
  let whole = Array2.init Float64 C_layout 300 40 (fun i j -> float ((40 * i) + j)) in
  ok "save" (save s ~path whole);
  let made = function
    | "copied" -> ok "copy" (copy whole)
    | "shared" -> ok "copy" (copy ~sharing:`Max whole)
    | _ -> ok "map" (map s ~path ~verify:`Full ())
  in
  List.iter
    (fun kind ->
      let before = unused () in
      let part = ref (with_ (fun () -> Array2.sub_left (get (made kind)) 100 7)) in
      let other = ref (with_ (fun () -> Array2.slice_left !part 3)) in
      if can_delete then (
        majors 4;
        check (kind ^ ": held by a part") (unused () = before);
        part := Array2.create Float64 C_layout 1 1;
        majors 4);
      check (kind ^ ": and by a part of that") (unused () = before && !other.{5} = float ((40 * 103) + 5));
      if can_delete then (
        other := Array1.create Float64 C_layout 1;
        majors 5;
        check (kind ^ ": ends") (unused () = before + 1);
        let r = made kind in
        let part = ref (with_ (fun () -> Array2.sub_left (get r) 1 2)) in
        is_error (kind ^ ": delete") (function Error (In_use { from; _ }) -> List.mem Heap from | _ -> false)
          (delete (region r));
        is_error (kind ^ ": revoke") (function Error (In_use { from; _ }) -> from = [ Heap ] | _ -> false)
          (revoke (region r));
        check (kind ^ ": nothing happened") (!part.{1, 3} = 83. && (get r).{2, 3} = 83.);
        part := Array2.create Float64 C_layout 1 1;
        majors 2;
        ok "revoke" (revoke (region r))))
    [ "copied"; "shared"; "mapped" ];
  Sys.remove path

external hold_in_roots : 'a -> unit = "region_roots_hold"
external get_from_roots : unit -> 'a = "region_roots_get"
external drop_roots : unit -> unit = "region_roots_drop"
external hold_foreign : unit -> unit = "region_roots_hold_foreign"

(* Boxroot marks its roots itself. The program allocates meanwhile, so that some of that happens while
   the collector sweeps. *)
let roots () =
  let kept = Array.make 2000 [||] in
  let allocate () =
    for i = 1 to 40_000 do
      kept.(i mod 2000) <- Array.make 200 i
    done;
    Gc.full_major ()
  in
  if can_delete then (
    let before = unused () in
    with_ (fun () -> hold_in_roots (give ()));
    for _ = 1 to 5 do allocate () done;
    check "held by roots" (unused () = before);
    drop_roots ();
    majors 4;
    check "and then ends" (unused () = before + 1);
    hold_foreign ();
    for _ = 1 to 5 do allocate () done;
    drop_roots ())

let churn () =
  if can_delete then (
    (* many regions, some held for a while, under a collector that is always busy *)
    let n = 3000 in
    let held = Array.make 50 [] in
    for i = 1 to n do
      let v = List.init (i mod 60) (fun j -> string_of_int (i + j)) in
      let w = get (ok "copy" (copy v)) in
      check "same" (v = w);
      let j = (i * 7919) mod 50 in
      List.iter (fun s -> if String.length s = 0 then check "read" false) held.(j);
      held.(j) <- w;
      ignore (opaque (Array.make 2000 i))
    done;
    Array.fill held 0 50 [];
    majors 4;
    let s = stats () in
    check (Printf.sprintf "all ended: %d live, %d resting" s.live s.resting) (s.live = 0 && s.resting = 0))

let deletes () =
  if not can_delete then (
    let r = ok "copy" (copy [ 1 ]) in
    is_error "delete" (function Error (Unsupported _) -> true | _ -> false) (delete (region r));
    is_error "revoke" (function Error (Unsupported _) -> true | _ -> false) (revoke (region r));
    check "lives" (get r = [ 1 ]))
  else
    let r = ok "copy" (copy (List.init 1000 string_of_int)) in
    let held = Array.init 10 (fun _ -> get r) in
    is_error "in use"
      (function Error (In_use { pointers; from }) -> pointers >= 10 && List.mem Heap from | _ -> false)
      (delete (region r));
    check "nothing happened" (List.length (get r) = 1000 && List.length held.(3) = 1000);
    Array.fill held 0 10 [];
    ok "delete" (delete (region r));
    check "over" ((info (region r)).state <> Live);
    (match get r with _ -> check "Deleted" false | exception Deleted -> ());
    is_error "twice" (function Error Ended -> true | _ -> false) (delete (region r));
    is_error "then revoke" (function Error Ended -> true | _ -> false) (revoke (region r));
    (* a finaliser that raises: either the result is there, or nothing was deleted *)
    let exception Raised in
    let r = ok "copy" (copy [ "raises" ]) in
    with_ (fun () -> Gc.finalise (fun _ -> raise Raised) (ref (opaque 0)));
    let deleted = ref false and raised = ref false in
    (match (match delete (region r) with Ok () -> deleted := true | Error _ -> ()); majors 1 with
    | () -> ()
    | exception Raised -> raised := true);
    check "the result is not hidden" (!deleted && !raised && (info (region r)).state <> Live);
    let r = ok "copy" (copy [ "held" ]) in
    let held = opaque (get r) in
    with_ (fun () -> Gc.finalise (fun _ -> raise Raised) (ref (opaque 0)));
    (match delete (region r) with
    | Error (In_use _) -> check "not run" false
    | r -> check ("held: " ^ show r) false
    | exception Raised -> check "nothing was deleted" ((info (region r)).state = Live && held == get r));
    (* a finaliser that holds the last pointer *)
    let r = ok "copy" (copy [ "finalised" ]) in
    with_ (fun () -> Gc.finalise ignore (ref (opaque (get r))));
    ok "held by a value with a finaliser" (delete (region r))

(* Deletions within the collections that another deletion runs: in finalisers, and in threads of the same domain. *)
let nested () =
  if can_delete then (
    let inner = ok "copy" (copy [ "inner" ]) and outer = ok "copy" (copy [ "outer" ]) in
    let results = ref [] in
    let also () =
      for _ = 1 to 3 do
        results := delete (region inner) :: delete (region outer) :: !results
      done
    in
    with_ (fun () -> Gc.finalise (fun _ -> also ()) (ref (opaque 0)));
    let held = opaque (get outer) in
    is_error "outer is held" (function Error (In_use _) -> true | _ -> false) (delete (region outer));
    check "inner" ((info (region inner)).state <> Live && List.length !results = 6);
    check "outer" (held = [ "outer" ] && get outer = [ "outer" ]))

let revokes () =
  if can_delete then (
    let r = ok "copy" (copy (List.init 1000 string_of_int)) in
    let held = Array.init 10 (fun _ -> get r) in
    ok "revoke" (revoke (region r));
    (match get r with _ -> check "Deleted" false | exception Deleted -> ());
    majors 3;
    ignore (opaque (Array.make 1000 held));
    Gc.compact ();
    check "compare" (compare held.(0) held.(1) = 0 && compare held.(0) [] <> 0);
    ignore (Hashtbl.hash held);
    check "tag" (Obj.tag (Obj.repr held.(0)) = 1001);
    (match Marshal.to_string held [] with _ -> check "marshal" false | exception Invalid_argument _ -> ());
    check "state" ((info (region r)).state = Revoked);
    is_error "twice" (function Error Ended -> true | _ -> false) (revoke (region r));
    let w = Weak.create 1 in
    Weak.set w 0 (Some held.(0));
    majors 2;
    ignore (Weak.get w 0);
    (* nothing is left of them but their addresses *)
    let before = lines "/proc/self/maps" in
    for i = 1 to 2000 do
      let r = ok "copy" (copy (Array.make 10 i)) in
      let v = get r in
      ok "revoke" (revoke (region r));
      held.(i mod 10) <- opaque (Obj.magic v)
    done;
    let after = lines "/proc/self/maps" in
    (* ThreadSanitizer keeps mappings of its own for what it has seen. *)
    if Sys.getenv_opt "TSAN_OPTIONS" = None then
      check (Printf.sprintf "mappings: %d, before %d" after before) (after < before + 50);
    majors 2)

(* What a process says before it dies, with the setting. *)
let write_to_region () =
  let r = ok "copy" (copy [| 1; 2; 3 |]) in
  (get r).(1) <- 5

let read_of_revoked () =
  let r = ok "copy" (copy [| 1; 2; 3 |]) in
  let v = get r in
  ok "revoke" (revoke (region r));
  exit v.(1)

let reports ?(setting = "debug.faults=report") ?(expected = true) part words =
  let path = Filename.temp_file "region" ".stderr" in
  let errors = Unix.openfile path [ Unix.O_WRONLY ] 0o600 in
  let program = Sys.executable_name in
  let is_ours = String.starts_with ~prefix:"OUTHEAP=" in
  let others = List.filter (fun s -> not (is_ours s)) (Array.to_list (Unix.environment ())) in
  let environment = Array.of_list (("OUTHEAP=" ^ setting) :: others) in
  let pid = Unix.create_process_env program [| program; part |] environment Unix.stdin Unix.stdout errors in
  let s = snd (Unix.waitpid [] pid) in
  Unix.close errors;
  let text = In_channel.with_open_bin path In_channel.input_all in
  Sys.remove path;
  check (part ^ ": " ^ status s) (s = Unix.WSIGNALED Sys.sigsegv);
  let said = List.exists (fun line -> String.starts_with ~prefix:words line) (String.split_on_char '\n' text) in
  check (Printf.sprintf "%s with %s said: %s" part setting text) (said = expected)

let faults () =
  let written = "outheap: a region, which is read-only, was written to at 0x" in
  reports "write-to-region" written;
  if can_delete then reports "read-of-revoked" "outheap: a region that was revoked was read at 0x";
  let debug = Sys.runtime_variant () = "d" in
  reports ~setting:"" ~expected:debug "write-to-region" written;
  reports ~setting:"warn=1,debug.faults=off" ~expected:false "write-to-region" written;
  reports ~setting:"debug.faults=report,debug.faults=off" ~expected:false "write-to-region" written;
  reports ~setting:"debug.faults=reported" ~expected:debug "write-to-region" written;
  let r = ok "copy" (copy [| 1; 2; 3 |]) in
  let s = in_child (fun () -> (get r).(1) <- 5; 0) in
  check ("a write: " ^ status s) (s = Unix.WSIGNALED Sys.sigsegv);
  if can_delete then (
    let s =
      in_child (fun () ->
          let v = get r in
          ok "revoke" (revoke (region r));
          v.(1))
    in
    check ("a read of what was revoked: " ^ status s) (s = Unix.WSIGNALED Sys.sigsegv))

let forks () =
  let r = ok "copy" (copy (List.init 100_000 string_of_int)) in
  let s =
    in_child (fun () ->
        let v = get r in
        majors 2;
        check "child" (List.length v = 100_000);
        ignore (opaque v);
        let mine = ok "copy" (copy [ "child" ]) in
        majors 2;
        check "own" (get mine = [ "child" ]);
        !failures)
  in
  check ("child: " ^ status s) (s = Unix.WEXITED 0);
  majors 2;
  check "parent" (List.length (get r) = 100_000)
