(* SPDX-License-Identifier: MIT *)
(* The checked build refuses each block of the major heap in turn, until the function has them all: what comes is
   Out_of_memory, and the heap is sound. See ../src/refused.rs. *)

open Check

external refuse : (int[@untagged]) -> unit
  = "ocaml_export_exports__refuse_bytecode" "ocaml_export_exports__refuse"
external long_error : (int[@untagged]) -> unit
  = "ocaml_export_exports__long_error_bytecode" "ocaml_export_exports__long_error"
external long_panic : (int[@untagged]) -> unit
  = "ocaml_export_exports__long_panic_bytecode" "ocaml_export_exports__long_panic"
external long_exception : (int[@untagged]) -> unit
  = "ocaml_export_exports__long_exception_bytecode" "ocaml_export_exports__long_exception"
external long_result : (int[@untagged]) -> string * float array * string list
  = "ocaml_export_exports__long_result_bytecode" "ocaml_export_exports__long_result"
external long_argument : (string -> int) -> (int[@untagged]) -> int
  = "ocaml_export_exports__long_argument_bytecode" "ocaml_export_exports__long_argument"

(* How often [f] failed before it did [what]. *)
let each name what expected f =
  let rec go n =
    refuse n;
    let outcome = match f () with x -> Ok x | exception e -> Error e in
    refuse (-1);
    Gc.full_major ();
    match outcome with
    | Error Out_of_memory -> if n > 100 then -1 else go (n + 1)
    | other -> if what other then n else -2
  in
  test name (fun () ->
      let n = go 0 in
      if n <> expected then Printf.printf "%s: %d failures, not %d\n%!" name n expected;
      n = expected)

let () =
  let n = 5000 in
  let kept = String.init n (fun i -> Char.chr (i land 127)) in
  let sum = Hashtbl.hash kept in
  each "error" (function Error (Ocaml_boxroot.Rust_error e) -> String.length e.message = n | _ -> false) 1
    (fun () -> long_error n);
  each "panic" (function Error (Ocaml_boxroot.Rust_panic e) -> String.length e.message = n | _ -> false) 1
    (fun () -> long_panic n);
  each "exception" (function Error (Exports.Parse_error (text, 1)) -> String.length text = n | _ -> false) 1
    (fun () -> long_exception n);
  each "result"
    (function
      | Ok (text, floats, list) ->
        String.length text = n && Array.length floats = n && List.for_all (fun s -> String.length s = n) list
      | Error _ -> false)
    5 (fun () -> long_result n);
  each "argument" (( = ) (Ok n)) 1 (fun () -> long_argument String.length n);
  test "what was kept" (fun () -> Hashtbl.hash kept = sum);
  finish ()
