(* SPDX-License-Identifier: MIT *)
let available = false
let recommended () = 1
let relax () = ()
let run_all functions = List.iter (fun f -> f ()) functions

let copies number f = for i = 0 to number - 1 do f i done
