(* SPDX-License-Identifier: MIT *)
(* What the tests of hash-consing share. *)

(* A program for the library hashcons changes this line. *)
module Hashcons = Outheap_hashcons

let off_heap = Hashcons.off_heap

external fail : int -> int = "hashcons_test_fail"
external hold : 'a -> unit = "hashcons_test_hold"
external held : unit -> 'a = "hashcons_test_held"
external custom : unit -> Obj.t = "hashcons_test_custom"
external abstract : unit -> Obj.t = "hashcons_test_abstract"
external foreign : unit -> Obj.t = "hashcons_test_foreign"
external wrong : unit -> string = "hashcons_test_validate"

(* With the work of a collection of cells in hand; its phase, 0: none is under way. *)
external slice : int -> unit = "hashcons_test_slice"
external phase : unit -> int = "hashcons_test_phase"

external begin_marking : unit -> bool = "hashcons_test_begin_marking" [@@noalloc]

(* A slice of the collector. From OCaml 5.5 on a cycle would not end without minor collections. *)
let major_slice =
  let count = Atomic.make 0 in
  fun words ->
    if Atomic.fetch_and_add count 1 land 15 = 0 && begin_marking () then Gc.minor ();
    ignore (Gc.major_slice words)

external is_tiny : unit -> bool = "hashcons_test_is_tiny"

let failures = ref 0

let check what good =
  if not good then (
    incr failures;
    if !failures < 20 then Printf.printf "FAIL: %s\n%!" what)

let validate what =
  let w = wrong () in
  check (what ^ ": " ^ w) (w = "")

let opaque = Sys.opaque_identity
let majors n = for _ = 1 to n do Hashcons.collect () done
let[@inline never] with_ f = f ()
let random = Random.State.make [| (match Sys.getenv_opt "SEED" with Some s -> int_of_string s | None -> 1) |]
let below n = Random.State.int random n

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
      let code = match f () with n -> n | exception e -> prerr_endline (Printexc.to_string e); 99 in
      flush_all ();
      Unix._exit code
  | pid -> snd (Unix.waitpid [] pid)
