(* SPDX-License-Identifier: MIT *)
(* The same interface over an OCaml array: what the GC does when the values are its own. *)
let slots : Obj.t array ref = ref [||]
let none = Obj.repr 0
let make count = slots := Array.make count none
let release () = slots := [||]
let create i v = !slots.(i) <- Obj.repr v
let modify = create
let delete i = !slots.(i) <- none

let fill first last v =
  for i = first to last - 1 do
    create i v
  done

let fill_from values = Array.iteri create values
let shuffle () = Rng.shuffle !slots
let delete_from first = Array.fill !slots first (Array.length !slots - first) none
let delete_all () = delete_from 0

let delete_but one_in =
  for i = 0 to Array.length !slots - 1 do
    if i mod one_in <> 0 then delete i
  done

let delete_by_thread () : float = failwith "a thread that OCaml does not know cannot write an OCaml array"
