(* SPDX-License-Identifier: MIT *)
(* The exceptions of Rust. Programs without this module get Failure with the same text. *)

exception Rust_panic of { message : string; file : string; line : int; backtrace : string }
exception Rust_error of { message : string; causes : string list }

let text = function
  | Rust_panic { message; file; line; backtrace } ->
    let place = if file = "" then "" else Printf.sprintf " at %s:%d" file line in
    let backtrace = if backtrace = "" then "" else "\n" ^ backtrace in
    Some (Printf.sprintf "Rust panic%s: %s%s" place message backtrace)
  | Rust_error { message; causes } -> Some (String.concat ": " (("Rust error" :: message :: causes)))
  | _ -> None

let constructor e = Obj.Extension_constructor.of_val e

let () =
  Printexc.register_printer text;
  let panic = Rust_panic { message = ""; file = ""; line = 0; backtrace = "" } in
  Callback.register "ocaml_boxroot.panic" (constructor panic);
  Callback.register "ocaml_boxroot.error" (constructor (Rust_error { message = ""; causes = [] }))
