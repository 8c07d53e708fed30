(* SPDX-License-Identifier: MIT *)
(* Time, with OUTHEAP=debug.clock=step: it passes when the program says so, and what the runtime's own threads have to
   do in it is done when these functions return. They are blocking sections. *)

(* So many seconds pass, of which the process has used the second number of a processor. *)
external pass : float -> float -> unit = "clock_pass"

(* Waits until all other threads of the process sleep: their domains are in blocking sections by then. *)
external settle : unit -> unit = "clock_settle"

(* A thread that OCaml does not know lets time pass, much faster than the machine's, until it is stopped: the program
   is idle for seconds whenever it waits for some milliseconds. *)
external start : unit -> unit = "clock_start"
external stop : unit -> unit = "clock_stop"

let idle seconds = settle (); pass seconds 0.

(* Does `f` every fiftieth of a second, and the processor does nothing else. *)
let work seconds f = for _ = 1 to int_of_float (seconds *. 50.) do f (); pass 0.02 0.02 done

let flowing f = start (); Fun.protect ~finally:stop f
