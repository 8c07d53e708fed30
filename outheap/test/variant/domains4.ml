(* SPDX-License-Identifier: MIT *)
(* OCaml 4: threads only. *)
let tests = [ ("threads", fun () -> List.iter Thread.join (List.init 4 (Thread.create Work.run))) ]
