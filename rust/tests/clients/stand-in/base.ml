(* SPDX-License-Identifier: MIT *)
(* The parts of Base that the test program of ocaml-interop uses. *)

module Uniform_array = struct
  type 'a t = Obj.t array  (* floats stay boxed *)

  let of_list l : 'a t =
    let a = Array.make (List.length l) (Obj.repr 0) in
    List.iteri (fun i x -> a.(i) <- Obj.repr x) l;
    a

  let to_list (a : 'a t) : 'a list = List.init (Array.length a) (fun i -> Obj.obj a.(i))
end

module Exn = struct
  let pp f e = Format.pp_print_string f (Printexc.to_string e)
end
