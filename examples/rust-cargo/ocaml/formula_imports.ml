(* Written by ocaml-boxroot from the types of the Rust library `formula`. Changes here are lost. *)

open! Formula [@@warning "-66"]

let import_0 : string -> expr = Interpreter.parse
let import_1 : expr -> float = Interpreter.eval

external register_ : (string * string * Stdlib.Obj.t) array -> unit = "formula_ocaml_register"

let () =
  register_ [|
    ("Interpreter.parse", "string -> expr", Stdlib.Obj.repr import_0);
    ("Interpreter.eval", "expr -> float", Stdlib.Obj.repr import_1);
  |]
