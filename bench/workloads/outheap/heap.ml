(* SPDX-License-Identifier: MIT *)
(* What the workloads ask of heap_stubs.c. *)
external mappings : unit -> int = "heap_mappings" [@@noalloc]
external proc_kilobytes : string -> string -> int = "heap_proc_kilobytes"
external huge_bytes : unit -> int = "heap_huge_bytes" [@@noalloc]

type counters = { seen : int; immediate : int; young : int; static : int; foreign : int; lines : int }
external counters : unit -> counters = "heap_counters"

external build : words:int -> random:bool -> irregular:bool -> immediates:int -> statics:int -> 'a array -> Obj.t array
  = "heap_build_byte" "heap_build"

let megabytes bytes = float bytes /. 1e6

(* The greatest memory that was resident, in MB. *)
let peak_resident () = float (proc_kilobytes "/proc/self/status" "VmHWM:") /. 1e3
