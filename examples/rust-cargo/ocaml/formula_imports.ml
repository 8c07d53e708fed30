(* Written by ocaml-boxroot from the types of the Rust library `formula`. Changes here are lost. *)

open! Formula [@@warning "-66"]

include (struct

let import_0 : string -> expr = Interpreter.parse
let import_1 : expr -> float = Interpreter.eval

(* OCaml refuses this module if a function's result has any type that one asks for, as with Obj.magic: Rust would
   believe it. Such a function can be imported from a module of your own, with the type that its results have. *)
module type Results = module type of struct
  let _0 = Stdlib.ref (Interpreter.parse : string -> _)
  let _1 = Stdlib.ref (Interpreter.eval : expr -> _)
end

external register_ : (string * string * Stdlib.Obj.t) array -> unit = "formula_ocaml_register"

let () =
  register_ [|
    ("Interpreter.parse", "string -> expr", Stdlib.Obj.repr import_0);
    ("Interpreter.eval", "expr -> float", Stdlib.Obj.repr import_1);
  |]

end : sig end)
