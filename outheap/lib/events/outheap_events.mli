(* SPDX-License-Identifier: MIT *)

(** Outheap's statistics as events of [runtime_events], beside the runtime's own: for tools that watch a program from
    outside, or from within. OCaml 5.1 and later.

    Each figure of {!Outheap.statistics} is a user event of type [Runtime_events.Type.int], with the name
    ["outheap." ^ field], as ["outheap.committed"], and the tag {!Outheap}. A consumer asks for it with
    [Runtime_events.Callbacks.add_user_event Runtime_events.Type.int]. With the stock runtime all figures are zero. *)

type Runtime_events.User.tag += Outheap

val names : string list
(** The names of the events. *)

val write : unit -> unit
(** Writes the figures once, where events are on ([Runtime_events.start], [OCAML_RUNTIME_EVENTS_START]); otherwise
    nothing happens. Any domain and thread. Cost: some twenty small events; the statistics take each space's lock once.
    *)

type t

val start : unit -> t
(** {!write} at the end of each major cycle from now on, until {!stop}. With OCaml 5.3 and later also only until the end
    of the domain that called this. *)

val stop : t -> unit
(** Twice is once. *)
