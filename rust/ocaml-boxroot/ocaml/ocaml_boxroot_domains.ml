(* SPDX-License-Identifier: MIT *)
(* What Runtime::spawn_domain and DomainHandle::join call. OCaml 5. *)

(* A job is the address of a closure in Rust; it is run once. *)
external run : int -> unit = "ocaml_boxroot_run_job"

let () =
  Stdlib.Callback.register "ocaml_boxroot.spawn_domain" (fun job -> Stdlib.Domain.spawn (fun () -> run job));
  Stdlib.Callback.register "ocaml_boxroot.join_domain" (Stdlib.Domain.join : unit Stdlib.Domain.t -> unit)
