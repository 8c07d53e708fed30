(* SPDX-License-Identifier: MIT *)
let spawn f = let d = Domain.spawn f in fun () -> Domain.join d
let several = 4
