(* SPDX-License-Identifier: MIT *)
(* The same interface over an OCaml array that grows: what a program pays that has no C. *)
let none (_ : int) : int = failwith "this callback has been removed"
let table = ref (Array.make 64 none)
let used = ref 0

let add closure =
  if !used = Array.length !table then table := Array.append !table (Array.make !used none);
  !table.(!used) <- closure;
  incr used;
  !used - 1

let replace number closure = !table.(number) <- closure
let call number argument = !table.(number) argument
let remove number = !table.(number) <- none
