(* SPDX-License-Identifier: MIT *)
(* A structure and its model: the items that its fields hold. *)

open Foreign

type cell = {
  name : string;
  check : unit -> unit;            (* raises Wrong *)
  change : context -> unit;        (* changes a field, or builds the structure again *)
  drop : unit -> unit;             (* what has to be done when it is given up *)
}

let nothing () = ()

(* A structure with fields that can be read, and changed one by one. *)
let fields ?(drop = nothing) ?(item = item) name items ~get ~set =
  { name; drop;
    check = (fun () -> Array.iteri (fun i it ->
      if not (holds it (get i)) then wrong "%s: field %d does not hold %s" name i (text it)) items);
    change = (fun c ->
      let i = int c (Array.length items) in
      let it = item c in
      items.(i) <- it; set i (value it)) }

(* A structure that does not change: it is built again. *)
let immutable ?(item = item_or_float) c name size (build : Obj.t array -> int -> Obj.t) =
  let make c =
    let items = Array.init size (fun _ -> item c) in
    let values = Array.make size (Obj.repr 0) in (* not an array of floats, whatever the first is *)
    Array.iteri (fun i it -> values.(i) <- value it) items;
    (items, build values) in
  let state = ref (make c) in
  { name; drop = nothing;
    check = (fun () ->
      let items, get = !state in
      Array.iteri (fun i it ->
        if not (holds it (get i)) then wrong "%s: field %d does not hold %s" name i (text it)) items);
    change = (fun c -> state := make c) }

let items ?(item = item) c n = Array.init n (fun _ -> item c)
let values its = Array.map value its (* no floats in it *)

let size c = match int c 40 with 0 -> 2000 + int c 4000 | 1 | 2 -> 100 + int c 300 | _ -> 1 + int c 12

let array_cell name its (a : Obj.t array) = fields name its ~get:(fun i -> a.(i)) ~set:(fun i v -> a.(i) <- v)
