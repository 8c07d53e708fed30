(* Written by ocaml-boxroot from the types of the Rust library `my_binding`. Changes here are lost. *)

open! My_binding [@@warning "-66"]

let import_0 : string -> entry list = Counter.count

external register_ : (string * string * Stdlib.Obj.t) array -> unit = "my_binding_ocaml_register"

let () =
  register_ [|
    ("Counter.count", "string -> entry list", Stdlib.Obj.repr import_0);
  |]
