(* SPDX-License-Identifier: MIT *)
(* The exceptions of Rust. Programs without this module get Failure with the same text. And what Rust asks Printexc
   about exceptions of OCaml. *)

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

let slots raw =
  let slot s =
    let open Printexc in
    let place (l : location) =
      (l.filename, l.line_number, l.start_char, l.end_char, Slot.name s, Slot.is_raise s, Slot.is_inline s)
    in
    Option.map place (Slot.location s)
  in
  match Printexc.backtrace_slots raw with
  | None -> []
  | Some slots -> List.filter_map slot (Array.to_list slots)

let () =
  Printexc.register_printer text;
  let panic = Rust_panic { message = ""; file = ""; line = 0; backtrace = "" } in
  Callback.register "ocaml_boxroot.panic" (constructor panic);
  Callback.register "ocaml_boxroot.error" (constructor (Rust_error { message = ""; causes = [] }));
  Callback.register "ocaml_boxroot.print" Printexc.to_string;
  Callback.register "ocaml_boxroot.backtrace" Printexc.raw_backtrace_to_string;
  Callback.register "ocaml_boxroot.backtrace_slots" slots
