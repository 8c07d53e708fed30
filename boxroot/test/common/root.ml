(* SPDX-License-Identifier: MIT *)
(* The library's API for OCaml code. A root is its address, which is an immediate to OCaml and therefore keeps nothing
   alive. *)

type t = int

let none : t = 0

external create : 'a -> t = "t_create" [@@noalloc]
external create_plain : 'a -> t = "t_create"
external get : t -> 'a = "t_get" [@@noalloc]
external get_ref : t -> int = "t_get_ref" [@@noalloc]
external deref : int -> 'a = "t_deref" [@@noalloc]
external modify : t -> 'a -> t = "t_modify" [@@noalloc]
external modify_plain : t -> 'a -> t = "t_modify"
external modify_keeps : t -> 'a -> t = "t_modify_keeps" [@@noalloc]
external delete : t -> unit = "t_delete" [@@noalloc]
external delete_plain : t -> unit = "t_delete"

(* with the domain lock released *)
external delete_nolock : t -> unit = "t_delete_nolock"

(* on a thread unknown to OCaml, at some time; and wait until it has done all *)
external delete_elsewhere : t -> unit = "t_delete_elsewhere"
external delete_elsewhere_done : unit -> unit = "t_delete_elsewhere_done"
external setup : unit -> bool = "t_setup"
external teardown : unit -> unit = "t_teardown"
external status : unit -> int = "t_status"
external pools_in_use : unit -> int = "t_pools_in_use"
external darkened_pools : unit -> int = "t_darkened_pools" (* pools whose values the library has marked itself *)
external pool_capacity : unit -> int = "t_pool_capacity"
external bytes_reserved : unit -> int = "t_bytes_reserved"

(* Calls that need the lock, made without it: in a blocking section of this thread, on a thread unknown to OCaml. They
   end the test when one does not fail as it should. The root, if any, and where it is afterwards. *)
external eperm_blocking : t -> t = "t_eperm_blocking"
external eperm_thread : t -> t = "t_eperm_thread"
external eperm_setup : unit -> unit = "t_eperm_setup"

(* the flavour under test *)
external is_checked : unit -> bool = "t_is_checked"
external is_stw : unit -> bool = "t_is_stw" (* all roots are visited at the start of a cycle *)
(* OCaml 5.5: a cycle begins with sweeping, and roots are marked later, while the world is not stopped for all. *)
let marks_late = Scanf.sscanf Sys.ocaml_version "%d.%d" (fun major minor -> (major, minor) >= (5, 5))

external is_conservative : unit -> bool = "t_is_conservative"
external is_rival : unit -> bool = "t_is_rival"
external is_sanitized : unit -> bool = "t_is_sanitized"
external is_tsan : unit -> bool = "t_is_tsan"
external is_thread_unsafe : unit -> bool = "t_is_thread_unsafe"

(* the process *)
external resident_kb : unit -> int = "t_resident_kb"
external virtual_kb : unit -> int = "t_virtual_kb"
external exit_now : int -> 'a = "t_exit_now"
external nap : int -> unit = "t_nap"
external c_static : unit -> Obj.t = "t_c_static" [@@noalloc]

let not_setup = 0
let running = 1
let tore_down = 2

let fail fmt =
  Printf.ksprintf
    (fun s ->
      prerr_endline ("FAILED: " ^ s);
      exit_now 1)
    fmt

let skip why =
  print_endline ("skipped: " ^ why);
  exit_now 77

(* Rounds of a long test: all of them in the long form, BOXROOT_TEST_SCALE percent (at least two) in the short form. *)
let scale =
  let percent = match Sys.getenv_opt "BOXROOT_TEST_SCALE" with Some s -> int_of_string s | None -> 100 in
  fun n -> max 2 (n * percent / 100)

(* Gc.compact; a full major collection instead where the debug runtime asserts on its own account of a compaction (OCaml
   5.3). *)
let compact = if Sys.getenv_opt "BOXROOT_TEST_NO_COMPACTION" = None then Gc.compact else Gc.full_major

let create_or_fail v =
  let r = create v in
  if r = none then fail "boxroot_create returned NULL";
  r

let keep v = ignore (Sys.opaque_identity v)
let text i = "value " ^ string_of_int i
let collect () = Gc.full_major ()

(* What `step` takes is used again: memory rises by at most `kb` in so many steps. *)
let rises ~steps ~kb what step =
  let heap_kb () = (Gc.quick_stat ()).Gc.heap_words / 128 in
  for i = 1 to 3 do step i done;
  collect ();
  let resident = resident_kb () and heap = heap_kb () in
  for i = 1 to steps do step i done;
  collect ();
  let resident = resident_kb () - resident and heap = heap_kb () - heap in
  Printf.printf "%s: %d KB more, of the heap %d\n%!" what resident heap;
  if (resident > kb || heap > kb) && not (is_sanitized ()) then fail "%s: %d KB more, of the heap %d" what resident heap

(* The same where it rises and falls between two cycles of the collector: peaks are compared, of the first steps, and of
   the others. One step of `every` is looked at. *)
let peaks ?(resident_kb = resident_kb) ?(every = 1) ~first ~others ~kb what step =
  let peak = ref 0 in
  let steps n = for i = 1 to n do step i; if i mod every = 0 then peak := max !peak (resident_kb ()) done in
  steps first;
  let before = !peak in
  peak := 0;
  steps others;
  let grown = !peak - before in
  Printf.printf "%s: %d KB more\n%!" what grown;
  if grown > kb && not (is_sanitized ()) then fail "%s: %d KB more" what grown

(* Main program of a set of tests: PROGRAM NAME runs one, PROGRAM --list names all, and says which are slow. Each test
   runs in a process of its own. Those that are unlisted are for tests which run the program in their own way. *)
let main ?(slow = []) ?(unlisted = []) tests =
  match Sys.argv with
  | [| _; "--list" |] ->
      List.iter (fun (name, _) -> print_endline (if List.mem name slow then name ^ " slow" else name)) tests
  | [| _; name |] -> (
      match List.assoc_opt name (tests @ unlisted) with
      | None ->
          prerr_endline ("no such test: " ^ name);
          exit 2
      | Some test -> (
          try
            test ();
            flush stdout
          with e ->
            Printf.eprintf "FAILED: exception %s\n%s%!" (Printexc.to_string e) (Printexc.get_backtrace ());
            exit_now 1))
  | _ ->
      prerr_endline "usage: PROGRAM --list | PROGRAM NAME";
      exit 2
