(* SPDX-License-Identifier: MIT *)
(* What the tests of owned data share. *)
module L = Outheap_linear
module Lists = L.List

external fail : int -> int = "linear_test_fail"
external foreign : unit -> Obj.t = "linear_test_foreign"
external beside : 'a -> int -> 'a = "linear_test_beside" [@@noalloc]

let variant = Outheap_region.can_delete
let ocaml5 = Sys.ocaml_version.[0] = '5'
let failures = ref 0

let check what good =
  if not good then (
    incr failures;
    if !failures < 20 then Printf.printf "FAIL: %s\n%!" what)

let raises what e f =
  check what (match f () with _ -> false | exception e' -> e' = e)

let refused what f =
  check (what ^ " is refused") (match f () with _ -> false | exception Invalid_argument _ -> true)

let whole what w = check (what ^ ": " ^ w) (w = "")
let opaque = Sys.opaque_identity
let random = Random.State.make [| (match Sys.getenv_opt "SEED" with Some s -> int_of_string s | None -> 1) |]
let below n = Random.State.int random n

module Int = struct
  type t = int
end

module Ints = L.Plain (Int)

module Text = struct
  type t = string
end

(* Keys of tables. *)
module Ints_hashed = struct
  include Ints

  let equal (a : int) b = a = b
  let hash a = a
end

module Strings_hashed = struct
  include L.Text

  let equal = String.equal
  let hash = Hashtbl.hash
end

(* Finalisers have run for what is dropped. *)
let collect () = for _ = 1 to 4 do Gc.full_major () done

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
      let code = match f () with n -> n | exception e -> prerr_endline (Printexc.to_string e); 99 in
      flush_all ();
      Unix._exit code
  | pid -> snd (Unix.waitpid [] pid)

exception Stop

(* --- what comes from outside --------------------------------------------------------------------------------------
   A sampler of allocations calls functions and raises exceptions, as a signal handler may. *)

let armed = ref false
let places = ref 0
let stop () = raise Exit
let act = ref stop

let stop_there _ =
  if !armed then begin
    decr places;
    if !places = 0 then begin
      armed := false;
      !act ()
    end
  end;
  None

(* Calls [f] if [stopping] works: OCaml 5.0 to 5.2 have no such sampler, and in bytecode nothing is promised. *)
let with_stops f =
  if Sys.backend_type = Sys.Native then
    let tracker = { Gc.Memprof.null_tracker with alloc_minor = stop_there; alloc_major = stop_there } in
    match Gc.Memprof.start ~sampling_rate:1. tracker with
    | exception Failure _ -> ()
    | _ -> Fun.protect ~finally:Gc.Memprof.stop f

(* What [f] returns; [None]: its allocation number [place] has raised [Exit]. *)
let stopping place f =
  places := place;
  armed := true;
  match f () with
  | result ->
      armed := false;
      Some result
  | exception Exit -> None

(* What [f] returns, and whether [there] was called at its allocation number [place]. *)
let with_a_call place there f =
  act := there;
  places := place;
  armed := true;
  let result = Fun.protect f ~finally:(fun () -> armed := false; act := stop) in
  (result, !places = 0)
