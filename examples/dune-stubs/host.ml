(* SPDX-License-Identifier: MIT *)
(* Loads the plugins named on the command line, in turn. *)
let () =
  Dynlink.allow_unsafe_modules true;
  try Array.iteri (fun i file -> if i > 0 then Dynlink.loadfile (Dynlink.adapt_filename file)) Sys.argv
  with Dynlink.Error e ->
    prerr_endline (Dynlink.error_message e);
    exit 1
