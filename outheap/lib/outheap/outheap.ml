(* SPDX-License-Identifier: MIT *)
type kind = Immediate | Unknown | Major | Young | Values | Foreign

external is_available : unit -> bool = "outheap_ml_available" [@@noalloc]
external classify_code : Obj.t -> int = "outheap_ml_classify" [@@noalloc]
external reserve_code : int -> int = "outheap_ml_reserve"
external set_opaque : bool -> bool = "outheap_ml_set_opaque" [@@noalloc]
external trim : unit -> int = "outheap_ml_trim"
external report : every:int -> int = "outheap_ml_report"

(* tools/statistics writes this list from outheap.h. *)
type statistics = {
  chunks : int;
  chunks_tainted : int;
  reserved : int;
  reserved_ahead : int;
  committed : int;
  resident_free : int;
  pools : int;
  pool_pages : int;
  blocks : int;
  block_bytes : int;
  young : int;
  minor_grown : int;
  minor_shrunk : int;
  minor_refused : int;
  ranges : int;
  commits : int;
  purges : int;
  reservations : int;
  advises : int;
  met_unknown : int;
  words_seen : int;
  words_immediate : int;
  words_young : int;
  words_static : int;
  words_foreign : int;
  lines_saved : int;
  refused_zone : int;
  refused_memory : int;
  refused_huge : int;
}

external statistics : unit -> statistics = "outheap_ml_statistics"

type memory = { used : int; limit : int; live : int; free : int; pools : int; blocks : int; young : int }

external memory : unit -> memory = "outheap_ml_memory"

type alarm = Gc.alarm

let on_pressure ?(at = 0.8) f =
  if not (at > 0. && at <= 1.) then invalid_arg "Outheap.on_pressure: at";
  let limit = (memory ()).limit in
  if limit = 0 then None
  else
    let level = int_of_float (at *. float_of_int limit) in
    Some
      (Gc.create_alarm (fun () ->
           let m = memory () in
           if m.used - m.free >= level then f m))

let off_pressure = Option.iter Gc.delete_alarm

let available = is_available ()
let kinds = [| Unknown; Major; Young; Values; Foreign |]
let classify v = if Obj.is_int v then Immediate else kinds.(classify_code v)

let reserve bytes =
  match reserve_code bytes with
  | 0 -> Ok ()
  | 1 -> Error "no such amount of address space"
  | 2 -> Error "not a possible amount"
  | _ -> Error "this program is linked with the stock runtime"

external setting : string -> string option = "outheap_ml_setting"

external stop_helper : unit -> unit = "outheap_ml_stop_helper"

type helper_span = { number : int; began : int; ended : int; work : int; marks : bool }

external helper_spans : unit -> helper_span array = "outheap_ml_helper_spans"
