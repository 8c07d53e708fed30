(* SPDX-License-Identifier: MIT *)
let available = true
let recommended () = Domain.recommended_domain_count ()
let relax = Domain.cpu_relax

(* Runs the functions at the same time, each in a new domain. *)
let run_all functions = List.iter Domain.join (List.map Domain.spawn functions)
