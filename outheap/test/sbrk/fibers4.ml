(* SPDX-License-Identifier: MIT *)
(* Stacks: deep recursion on the system's stack. For OCaml 4.14. *)
let rec deep n = if n = 0 then 0 else 1 + deep (n - 1)
let run () = 50 * deep 20_000
