(* SPDX-License-Identifier: MIT *)
(* Unit tests of the documented behaviour, each in a process of its own. *)

open Root

external expect_tore_down : Root.t -> unit = "u_expect_tore_down"
external error_string : unit -> string = "u_error_string"
external printed_stats : unit -> string = "u_printed_stats"
external stat : string -> int = "u_stat"
external pool_bytes : unit -> int = "u_pool_bytes"
external registered_thread : int -> unit = "u_registered_thread"
external start_deleting : int -> unit = "u_start_deleting"
external stop_deleting : unit -> unit = "u_stop_deleting"
external block_alarms : unit -> unit = "u_block_alarms"
external delete_in_handlers : bool -> Root.t array -> int = "u_delete_in_handlers"
external create_missing : Root.t array -> int = "u_create_missing"
external cxx : int -> int = "u_cxx"
external compat_040 : 'a -> int = "u_compat_040"

let text i = string_of_int (i * 7919)
let make n = Array.init n (fun i -> create_or_fail (text i))

let check_text what r i =
  let s : Obj.t = get r in
  if not (Obj.is_block s && Obj.tag s = Obj.string_tag && (Obj.obj s : string) = text i) then
    fail "%s: root %d lost its value" what i

let check what roots = Array.iteri (fun i r -> if r <> none then check_text what r i) roots
let delete_all roots = Array.iter (fun r -> if r <> none then delete r) roots

let churn () =
  for i = 1 to 20_000 do
    ignore (Sys.opaque_identity (string_of_int i))
  done

(* OCaml 4.14 makes no minor collection when nothing was allocated. *)
let minor () =
  ignore (Sys.opaque_identity (ref 0));
  Gc.minor ()

let collect () =
  minor ();
  churn ();
  ignore (Gc.major_slice 1000);
  churn ();
  Gc.full_major ();
  churn ();
  Root.compact ()
