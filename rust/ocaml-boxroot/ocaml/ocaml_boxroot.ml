(* SPDX-License-Identifier: MIT *)
(* The exceptions of Rust. Programs without this module get Failure with the same text. And what Rust asks of OCaml:
   what Printexc knows of exceptions, and domains. *)

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
    let place (l : Stdlib.Printexc.location) =
      let name = Stdlib.Printexc.Slot.name s in
      let is_raise = Stdlib.Printexc.Slot.is_raise s and is_inline = Stdlib.Printexc.Slot.is_inline s in
      (l.filename, l.line_number, l.start_char, l.end_char, name, is_raise, is_inline)
    in
    Stdlib.Option.map place (Stdlib.Printexc.Slot.location s)
  in
  match Stdlib.Printexc.backtrace_slots raw with
  | None -> []
  | Some slots -> Stdlib.List.filter_map slot (Stdlib.Array.to_list slots)

(* A job is a block that Rust made; it is run once. *)
type job

external run : job -> unit = "ocaml_boxroot_run_job"

(* For OCaml 4, where Stdlib has no Domain that hides this one. *)
module Absent = struct
  [@@@warning "-32-60"]

  module Domain = struct
    let spawn job = job ()
    let join () = ()
  end
end

let spawn, join =
  let open! Absent in
  let open! Stdlib in
  ((fun job -> Domain.spawn (fun () -> run job)), fun domain : unit -> Domain.join domain)
[@@warning "-66"]

let () =
  Stdlib.Printexc.register_printer text;
  let panic = Rust_panic { message = ""; file = ""; line = 0; backtrace = "" } in
  let error = Rust_error { message = ""; causes = [] } in
  let print = Stdlib.Printexc.to_string and backtrace = Stdlib.Printexc.raw_backtrace_to_string in
  Stdlib.Callback.register "ocaml_boxroot.exceptions"
    (seal 0 (constructor panic, constructor error, print, backtrace, slots));
  Stdlib.Callback.register "ocaml_boxroot.domains" (seal 1 (spawn, join))
