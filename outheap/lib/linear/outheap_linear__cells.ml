(* SPDX-License-Identifier: MIT *)
(* Cells of a program's own types. *)
module Raw = Outheap_linear__raw

type 'a taken = { fields : 'a; token : int }

let fields taken = taken.fields

module type TYPE = sig
  type t

  val example : t
end

module Make (T : TYPE) () = struct
  type token = int

  (* Cells that are written again must keep their constructor: it is the tag, which is that of the pool. *)
  let () =
    if not (Raw.is_ordinary T.example) then
      invalid_arg "Outheap_linear.Cells.Make: the example may be of a polymorphic variant or an extensible type"

  let group = Raw.group ()

  let refused = function
    | 1 -> invalid_arg "Outheap_linear.Cells.take: not a cell of this functor"
    | 2 -> raise Raw.Moved
    | 3 -> raise Out_of_memory
    | 4 -> invalid_arg "Outheap_linear.Cells: not a block of a constructor, tuple or record, of 62 fields at most"
    | 5 -> invalid_arg "Outheap_linear.Cells.put: the cell had another constructor"
    | n -> invalid_arg (Printf.sprintf "Outheap_linear.Cells: field %d is a value of the heap" (n - 6))

  let result (v : Obj.t) : T.t = if Obj.is_int v then refused (Obj.obj v : int) else Sys.opaque_identity (Obj.obj v)
  let make (v : T.t) = result (Raw.make group v)

  (* The compiler may read the fields of an immutable block later, when the cell has others; so these are read as
     those of an array are. Pairs, such as the cells of lists, are copied without a call. *)
  let[@inline] copy (v : T.t) : T.t =
    let c : Raw.cell = Obj.magic v in
    if Obj.size (Obj.repr v) = 2 && Raw.byte c (-8) = '\000' then
        Obj.magic (Array.unsafe_get (Raw.words c) 0, Array.unsafe_get (Raw.words c) 1)
    else Obj.obj (Obj.dup (Obj.repr v))

  let take (v : T.t) =
    let token = Raw.take group v in
    if token <= 0 && token >= -2 then refused (-token);
    match { fields = copy v; token } with
    | taken -> taken
    | exception e ->
        Raw.untake token;
        raise e

  let token taken = taken.token
  let put token (v : T.t) = result (Raw.put group token v)
  let drop token = match Raw.drop group token with 0 -> () | n -> refused n

  let live () = Raw.Group.sum group Raw.used
  let memory () = Raw.Group.sum group Raw.bytes
  let trim () = Raw.Group.sum group Raw.trim
  let check () = Raw.Group.check group
end
