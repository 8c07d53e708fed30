(* SPDX-License-Identifier: MIT *)
(* The OCaml side of embed.c. *)

external owner : int -> Obj.t = "e_owner"
external maker : int -> Obj.t = "e_maker"

let kept = ref []

let () =
  Callback.register "collect" (fun () ->
      Gc.minor ();
      for i = 1 to 10_000 do
        ignore (Sys.opaque_identity (string_of_int i))
      done;
      Gc.full_major ());
  Callback.register "text" (fun i -> string_of_int (i * 7919));
  Callback.register "is_text" (fun s i -> s = string_of_int (i * 7919));
  Callback.register "keep owners" (fun n -> kept := List.init n owner);
  Callback.register "keep makers" (fun n -> kept := List.init n maker);
  Callback.register "exit" (fun (n : int) : unit -> exit n)
