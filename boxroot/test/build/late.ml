(* SPDX-License-Identifier: MIT *)
(* A program without the library, which a plug-in brings when domains have run already.   late SCENARIO HOW PLUGIN: the
   thread of a domain waits in a destructor of its thread-local data, a POSIX key (HOW 0) or as C++ registers it (1),
   and does there what the plug-in tells it (late_side.ml). THREADS: how many other threads there are. *)

external end_with : int -> unit = "late_end_with"
external threads : int -> unit = "late_threads"
external wait_ended : unit -> unit = "late_wait_ended"

let lets_go = Atomic.make false
let spawned () = Domain.join (Domain.spawn ignore)

let () =
  let how = int_of_string Sys.argv.(2) in
  Option.iter (fun n -> threads (int_of_string n)) (Sys.getenv_opt "THREADS");
  match Sys.argv.(1) with
  | "ended-before" ->
      spawned ();
      Domain.join (Domain.spawn (fun () -> end_with how));
      wait_ended ();
      Dynlink.loadfile Sys.argv.(3)
  | "ends-before-use" ->
      spawned ();
      Late_hook.before_use :=
        (fun () -> Domain.join (Domain.spawn (fun () -> end_with how)); wait_ended ());
      Dynlink.loadfile Sys.argv.(3)
  | "ends-after-load" ->
      let d = Domain.spawn (fun () ->
        end_with how;
        while not (Atomic.get lets_go) do Domain.cpu_relax () done)
      in
      Late_hook.before_use := (fun () -> Atomic.set lets_go true; Domain.join d; wait_ended ());
      Dynlink.loadfile Sys.argv.(3)
  | s -> failwith s
