(* Written by ocaml-boxroot from the types of the Rust library `formula`. Changes here are lost. *)

[@@@warning "-30"]

type expr =
  | Number of float
  | Variable of string
  | Sum of expr * expr
  | Product of expr * expr

external variable : string -> float = "ocaml_export_formula__variable"

(* So that a program which uses this module contains the exceptions of Rust. *)
let () = Stdlib.ignore (Stdlib.Sys.opaque_identity [%extension_constructor Ocaml_boxroot.Rust_error])

include (struct

external check_ : (string * string) array -> unit = "formula_ocaml_check"

let () =
  check_ [|
    ("the type `expr`", "expr =\n  | Number of float\n  | Variable of string\n  | Sum of expr * expr\n  | Product of expr * expr");
    ("the function `variable`", "external variable : string -> float = \"ocaml_export_formula__variable\"");
  |]

end : sig end)
