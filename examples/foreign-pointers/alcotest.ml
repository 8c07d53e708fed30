(* SPDX-License-Identifier: MIT *)
(* What ocaml-ssl's own tests use of the library alcotest. Prints a line for each test that passes; the first that does
   not ends the program by an exception. *)

let string : string -> string -> bool = ( = )
let check equal what expected found = if not (equal expected found) then failwith (what ^ ": " ^ found)
let test_case name `Quick test = name, test

let run name groups =
  let one group (test, body) = body (); Printf.printf "passed %s: %s %s\n%!" name group test in
  List.iter (fun (group, tests) -> List.iter (one group) tests) groups
