(* SPDX-License-Identifier: MIT *)
(* The exceptions of Rust. Programs without this module get Failure with the same text. And what Rust asks Printexc
   about exceptions of OCaml. *)

exception Rust_panic of { message : string; file : string; line : int; backtrace : string }
exception Rust_error of { message : string; causes : string list }

let text = function
  | Rust_panic { message; file; line; backtrace } ->
    let place = if file = "" then "" else Stdlib.Printf.sprintf " at %s:%d" file line in
    let backtrace = if backtrace = "" then "" else "\n" ^ backtrace in
    Some (Stdlib.Printf.sprintf "Rust panic%s: %s%s" place message backtrace)
  | Rust_error { message; causes } -> Some (Stdlib.String.concat ": " (("Rust error" :: message :: causes)))
  | _ -> None

external seal : int -> 'a -> 'b = "ocaml_boxroot_seal"

let constructor e = Stdlib.Obj.Extension_constructor.of_val e

let slots raw =
  let slot s =
    let open Stdlib.Printexc in
    let place (l : location) =
      (l.filename, l.line_number, l.start_char, l.end_char, Slot.name s, Slot.is_raise s, Slot.is_inline s)
    in
    Stdlib.Option.map place (Slot.location s)
  in
  match Stdlib.Printexc.backtrace_slots raw with
  | None -> []
  | Some slots -> Stdlib.List.filter_map slot (Stdlib.Array.to_list slots)

let () =
  Stdlib.Printexc.register_printer text;
  let panic = Rust_panic { message = ""; file = ""; line = 0; backtrace = "" } in
  let error = Rust_error { message = ""; causes = [] } in
  let print = Stdlib.Printexc.to_string and backtrace = Stdlib.Printexc.raw_backtrace_to_string in
  Stdlib.Callback.register "ocaml_boxroot.exceptions"
    (seal 0 (constructor panic, constructor error, print, backtrace, slots))
