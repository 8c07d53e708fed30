(* SPDX-License-Identifier: MIT *)
let available = true
let recommended () = Domain.recommended_domain_count ()
let relax = Domain.cpu_relax

(* Runs the functions at the same time, each in a new domain. *)
let run_all functions = List.iter Domain.join (List.map Domain.spawn functions)

(* [f 0] .. [f (number - 1)] at the same time, each in a new domain; a single one in this domain. *)
let copies number f = if number = 1 then f 0 else run_all (List.init number (fun i () -> f i))
