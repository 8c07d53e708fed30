(* SPDX-License-Identifier: MIT *)
let run f = List.iter Domain.join (List.init 2 (fun _ -> Domain.spawn f))
