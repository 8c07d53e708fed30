(* SPDX-License-Identifier: MIT *)
(* Linked before systhreads: tests whose name begins with "late-" use the library before systhreads is initialised. *)

let roots =
  if Array.length Sys.argv > 1 && String.length Sys.argv.(1) > 5 && String.sub Sys.argv.(1) 0 5 = "late-" then
    Array.init 100 (fun i -> Root.create (string_of_int i))
  else [||]
