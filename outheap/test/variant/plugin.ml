(* SPDX-License-Identifier: MIT *)
let () = Shared.value := Some ("of a plugin", 2.5, (42, [ "static"; "data" ]))
