(* SPDX-License-Identifier: MIT *)
(* How long the steps of a program take: a step is what lies between two calls of [start], [step] and [resume], on one
   thread. *)
external start : unit -> unit = "steps_start" [@@noalloc] (* forgets all steps *)
external step : unit -> unit = "steps_step" [@@noalloc] (* ends a step and begins the next *)
external resume : unit -> unit = "steps_resume" [@@noalloc] (* begins a step; what came before is in none *)
external quantile : bool -> float -> float = "steps_quantile" (* of processor time?; 1. = the worst; milliseconds *)

(* Processor time is the figure to compare: the wall clock counts what other programs do to us. *)
let metrics what =
  Bench.metric ("worst " ^ what) (quantile false 1.) "ms";
  Bench.metric ("worst " ^ what ^ ", processor time") (quantile true 1.) "ms";
  Bench.metric ("99.9th percentile " ^ what) (quantile false 0.999) "ms";
  Bench.metric ("99.9th percentile " ^ what ^ ", processor time") (quantile true 0.999) "ms"

(* Points of the curve of all steps' times, which the report draws: processor times, or those of the wall clock. *)
let distribution ?(processor = true) what =
  List.iter
    (fun percent -> Bench.metric (Printf.sprintf "distribution of %s: %g %%" what percent)
       (quantile processor (percent /. 100.)) "ms")
    [ 50.; 75.; 90.; 95.; 99.; 99.5; 99.9; 99.95; 99.99; 99.995; 99.999; 100. ]
