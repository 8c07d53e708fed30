(* SPDX-License-Identifier: MIT *)
(* What the tests of regions share. *)
open Outheap_region

external register : unit -> bool = "region_test_register"
external custom : bool -> int -> Obj.t = "region_test_custom"
external custom_of_type : int -> Obj.t = "region_test_custom_of_type" (* registered: the nth of them, which holds n *)
external custom_number : Obj.t -> int = "region_test_custom_number"
external abstract : unit -> Obj.t = "region_test_abstract"
external occupy : int -> int -> bool = "region_test_occupy"
external color : Obj.t -> int = "region_test_color"
external proc : string -> string -> int = "region_test_proc"
external fail : int -> bool = "region_test_fail" [@@noalloc]
external umasks : unit -> int = "region_test_umasks" [@@noalloc]
external few_mappings : int -> bool = "region_test_few_mappings"
external lines : string -> int = "region_test_lines"

external begin_marking : unit -> bool = "region_test_begin_marking" [@@noalloc]

(* A slice. From OCaml 5.5 on a cycle would not end without minor collections. *)
let slice =
  let count = Atomic.make 0 in
  fun words ->
    if Atomic.fetch_and_add count 1 land 15 = 0 && begin_marking () then Gc.minor ();
    ignore (Gc.major_slice words)

let failures = ref 0

let check what good =
  if not good then (
    incr failures;
    Printf.printf "FAIL: %s\n%!" what)

let ok what = function
  | Ok x -> x
  | Error e ->
      Printf.printf "FAIL: %s: %s\n%!" what (error_to_string e);
      exit 1

let show = function Ok _ -> "Ok" | Error e -> error_to_string e
let is_error what wanted r = check (Printf.sprintf "%s: %s instead of an error" what (show r)) (wanted r)
let opaque = Sys.opaque_identity
let majors n = for _ = 1 to n do Gc.full_major () done

(* Ends what is not used; a function of its own, so that nothing of the caller is in registers. *)
let unused () = (stats ()).unused
let[@inline never] with_ f = f ()

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
      let code = match f () with n -> n | exception e -> prerr_endline (Printexc.to_string e); 99 in
      flush_all ();
      Unix._exit code
  | pid -> snd (Unix.waitpid [] pid)

let status = function
  | Unix.WEXITED n -> Printf.sprintf "exit code %d" n
  | WSIGNALED n -> Printf.sprintf "signal %d" n
  | WSTOPPED n -> Printf.sprintf "stopped by %d" n
