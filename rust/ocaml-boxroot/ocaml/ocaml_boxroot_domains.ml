(* SPDX-License-Identifier: MIT *)
(* What Runtime::spawn_domain and DomainHandle::join call. OCaml 5. *)

include (struct
  (* A job is a block that Rust made; it is run once. *)
  type job

  external run : job -> unit = "ocaml_boxroot_run_job"
  external seal : int -> 'a -> 'b = "ocaml_boxroot_seal"

  let spawn job = Stdlib.Domain.spawn (fun () -> run job)
  let join : unit Stdlib.Domain.t -> unit = Stdlib.Domain.join
  let () = Stdlib.Callback.register "ocaml_boxroot.domains" (seal 1 (spawn, join))
end : sig end)
