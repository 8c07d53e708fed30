(* SPDX-License-Identifier: MIT *)
(* PROGRAM SCENARIO FILE…: plug-ins of C with the library, which are loaded and unloaded (reload.c). *)
external run : string array -> unit = "reload_run"
external is_other_thread : unit -> unit = "reload_other_thread"

let collect () = Gc.full_major (); ignore (Sys.opaque_identity (List.init 1000 string_of_int)); Gc.minor ()

let () =
  Callback.register "collect" collect;
  Callback.register "other domain" (fun () -> Par.join (Par.spawn (fun () -> is_other_thread (); Gc.minor ())));
  run Sys.argv
