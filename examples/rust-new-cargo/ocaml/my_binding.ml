(* Written by ocaml-boxroot from the types of the Rust library `my_binding`. Changes here are lost. *)

[@@@warning "-30"]

type entry = {
  word : string;  (** The word. *)
  times : int;  (** How often. *)
}

external is_ignored : string -> bool = "ocaml_export_my_binding__is_ignored"

(* So that a program which uses this module contains the exceptions of Rust. *)
let () = Stdlib.ignore (Stdlib.Sys.opaque_identity [%extension_constructor Ocaml_boxroot.Rust_error])

include (struct

external check_ : (string * string) array -> unit = "my_binding_ocaml_check"

let () =
  check_ [|
    ("the type `entry`", "entry = {\n  word : string;  (** The word. *)\n  times : int;  (** How often. *)\n}");
    ("the function `is_ignored`", "external is_ignored : string -> bool = \"ocaml_export_my_binding__is_ignored\"");
  |]

end : sig end)
