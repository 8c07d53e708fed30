(* SPDX-License-Identifier: MIT *)
let spawn f = let r = f () in fun () -> r
let several = 1
