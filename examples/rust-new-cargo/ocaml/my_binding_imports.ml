(* Written by ocaml-boxroot from the types of the Rust library `my_binding`. Changes here are lost. *)

open! My_binding [@@warning "-66"]

include (struct

let import_0 : string -> entry list = Counter.count

(* OCaml refuses this module if a function's result has any type that one asks for, as with Obj.magic: Rust would
   believe it. Such a function can be imported from a module of your own, with the type that its results have. *)
module type Results = module type of struct
  let _0 = Stdlib.ref (Counter.count : string -> _)
end

external register_ : (string * string * Stdlib.Obj.t) array -> unit = "my_binding_ocaml_register"

let () =
  register_ [|
    ("Counter.count", "string -> entry list", Stdlib.Obj.repr import_0);
  |]

end : sig end)
