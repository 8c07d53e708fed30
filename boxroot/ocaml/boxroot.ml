(* SPDX-License-Identifier: MIT *)
type status = Not_setup | Running | Torn_down

external status_code : unit -> int = "boxroot_ml_status" [@@noalloc]
external setup_ok : unit -> bool = "boxroot_ml_setup"
external error_string : unit -> string = "boxroot_ml_error_string"

let status () = match status_code () with 0 -> Not_setup | 1 -> Running | _ -> Torn_down
let setup () = if setup_ok () then Ok () else Error (error_string ())

(* Written by tools/statistics. *)
type stats = {
  pool_bytes : int;
  pool_capacity : int;
  bytes_reserved : int;
  pools_in_use : int;
  pools_peak : int;
  pools_purged : int;
  pools_adopted : int;
  roots_last_cycle : int;
  create_slow : int;
  delete_slow : int;
  delete_remote : int;
  modify_slow : int;
  barrier : int;
  darkened_pools : int;
  minor_scans : int;
  minor_slots : int;
  major_starts : int;
  other_scans : int;
}

external stats : unit -> stats = "boxroot_ml_stats"
external print_to_c_stdout : unit -> unit = "boxroot_ml_print_stats"

let print_stats () =
  flush stdout;
  print_to_c_stdout ()

external report_to : string -> string = "boxroot_ml_report"
external sample_one_in : int -> string = "boxroot_ml_sample"

let result = function "" -> Ok () | error -> Error error
let report ?(file = "") () = result (report_to file)
let sample n = result (sample_one_in n)
