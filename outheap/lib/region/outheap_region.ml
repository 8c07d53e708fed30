(* SPDX-License-Identifier: MIT *)
type t

(* [word] is an immediate, or the address of a block less one, which looks like a number. *)
type 'a root = { region : t; word : int; block : bool }
type source = Roots | Heap | Regions

type error =
  | Unsupported of string
  | No_memory
  | Too_many
  | Refused of { kind : string; identifier : string; path : string }
  | In_use of { pointers : int; from : source list }
  | Ended
  | System of { file : string; call : string; message : string }
  | Damaged of { file : string; what : string }
  | Other_program of { file : string; what : string; identifier : string; wanted : string }
  | Other_schema of { file : string; name : string; version : int; wanted_name : string; wanted_version : int }
  | Missing of { file : string; digest : string }

exception Deleted

let () = Callback.register_exception "Outheap_region.Deleted" Deleted

external start : unit -> bool = "outheap_region_ml_start"

let can_delete = start ()

(* Says what was refused, and what helps; region_api.c says the same to C. *)
let reason = function
  | "closure" -> ("a function", "; ~closures:true copies functions, but not into images")
  | "object" -> ("an object", "; ~closures:true copies objects, but not into images")
  | "lazy" -> ("a lazy value that is not forced", "; force it before")
  | "abstract" -> ("an abstract block of C code", "")
  | "custom" -> ("a custom block", ", of a type that was not registered")
  | "continuation" -> ("a continuation", "")
  | "extension constructor" -> ("the constructor of an exception or of an extensible type", "")
  | "foreign pointer" -> ("a pointer to memory outside the heap", "")
  | other -> (other, "")

let error_to_string =
  let named name = if name = "" then "" else " \"" ^ name ^ "\"" in
  let of_file file = if file = "" then "" else file ^ ": " in
  function
  | Unsupported why -> why
  | No_memory -> "no memory"
  | Too_many -> "too many regions (there may be 32,768), or no address space"
  | Refused { kind; identifier; path } ->
      let what, advice = reason kind in
      let where = if path = "" then "the value itself" else "at " ^ path in
      "cannot be copied: " ^ where ^ ", " ^ what ^ named identifier ^ advice
  | In_use { pointers; from } ->
      let name = function Roots -> "roots" | Heap -> "the heap" | Regions -> "other regions" in
      let from = if from = [] then "" else ", from " ^ String.concat ", " (List.map name from) in
      Printf.sprintf "in use: %d pointer%s%s" pointers (if pointers = 1 then "" else "s") from
  | Ended -> "the region was deleted or revoked before"
  | System { file; call; message } -> of_file file ^ call ^ ": " ^ message
  | Damaged { file; what } -> of_file file ^ "damaged: " ^ what
  | Other_program { file; what; identifier; wanted } ->
      of_file file ^ "made by another program: " ^ what ^ named identifier
      ^ if wanted = "" then "" else ", wanted " ^ wanted
  | Other_schema { file; name; version; wanted_name; wanted_version } ->
      Printf.sprintf "%sholds schema \"%s\" version %d, wanted \"%s\" version %d" (of_file file) name version
        wanted_name wanted_version
  | Missing { file; digest } -> of_file file ^ "needs an image that is not mapped: the one with digest " ^ digest

(* [options] is a sum of those in outheap_region.h. *)
external copy_value : 'a -> int -> ('a root, error) result = "outheap_region_ml_copy"
external get_value : t -> int -> bool -> 'a = "outheap_region_ml_get"

let max_sharing = function `Max -> 1 | `Keep -> 0
let track = function `Track -> 4 | `Refuse -> 0
let full = function `Full -> 8 | `Header -> 0
let alone exclusive = if exclusive then 16 else 0

let copy ?(sharing = `Keep) ?(closures = false) ?(writes = `Refuse) ?(exclusive = false) v =
  copy_value v (max_sharing sharing + (if closures then 2 else 0) + track writes + alone exclusive)

let get r = get_value r.region r.word r.block
let region r = r.region

external delete_if_unused : t -> (unit, error) result = "outheap_region_ml_delete"
external revoke : t -> (unit, error) result = "outheap_region_ml_revoke"

(* No OCaml code runs within the two calls, so no exception can come between a deletion and its result. *)
let delete region =
  match delete_if_unused region with
  | Error (In_use _) ->
      (* Values that wait for their finalisers may hold the pointers. *)
      Gc.full_major ();
      delete_if_unused region
  | r -> r

type 'a schema = { name : string; version : int }

let schema ~name ~version =
  let length = String.length name in
  if length < 1 || length > 127 || String.contains name '\000' then
    invalid_arg "Outheap_region.schema: a name has 1 to 127 bytes, none of them zero";
  { name; version }

external save_value : t array -> string * int -> string -> int -> 'a -> (unit, error) result
  = "outheap_region_ml_save"

external map_file : string -> int -> string -> int -> int -> ('a root, error) result = "outheap_region_ml_map"

let save ?(sharing = `Keep) ?(needs = []) ?(exclusive = false) s ~path v =
  save_value (Array.of_list needs) (s.name, s.version) path (max_sharing sharing + alone exclusive) v

let map s ~path ?(verify = `Header) ?(writes = `Refuse) () =
  map_file s.name s.version path (full verify + track writes) (-1)

let map_part s ~path ?(verify = `Header) ?(writes = `Refuse) ~offset () =
  if offset < 0 || offset land 0xffff <> 0 then invalid_arg "Outheap_region.map_part"
  else map_file s.name s.version path (full verify + track writes) offset

external is_in_region : Obj.t -> bool = "outheap_region_ml_is_in_region" [@@noalloc]
external address : Obj.t -> nativeint = "outheap_region_ml_address"
external contains : t -> Obj.t -> bool = "outheap_region_ml_contains"

type state = Live | Ending | Over | Revoked

type info = {
  state : state;
  bytes : int;
  words : int;
  blocks : int;
  address : int;
  digest : string;
  relocated : bool;
  tracked : int;
}

external info : t -> info = "outheap_region_ml_info"

type stats = {
  live : int;
  live_bytes : int;
  revoked : int;
  resting : int;
  deleted : int;
  unused : int;
  second : int;
  longest_wait : int;
}

external stats : unit -> stats = "outheap_region_ml_stats"
