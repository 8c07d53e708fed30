(* SPDX-License-Identifier: MIT *)

(** Outheap's statistics as events of [runtime_events], beside the runtime's own: for tools that watch a program from
    outside, or from within. OCaml 5.1 and later.

    Each figure of {!Outheap.statistics} is a user event of type [Runtime_events.Type.int], with the name
    ["outheap." ^ field], as ["outheap.committed"], and the tag {!Outheap}. A consumer asks for it with
    [Runtime_events.Callbacks.add_user_event Runtime_events.Type.int]. With the stock runtime all figures are zero. The
    runtime's events of that type have 32 bits: a figure above 2{^31} - 1 is told as that. {!statistics} has it whole.

    The helper (setting [helper]) is a separate thread, which is no domain and has no ring of events: its work is
    told by the domain that calls {!write}, afterwards ({!helper}). *)

type Runtime_events.User.tag += Outheap

val names : string list
(** The names of the figures' events. *)

val statistics : (string * int) list Runtime_events.Type.t
(** All figures of one moment, each with the name of its field: the type of the event ["outheap.statistics"]. A consumer
    links this library, and asks for it with [Runtime_events.Callbacks.add_user_event Outheap_events.statistics]. *)

val helper : Outheap.helper_span Runtime_events.Type.t
(** A stretch of the helper's work without a wait: the type of the event ["outheap.helper"]. [began] and [ended] are
    nanoseconds of the clock of all events' timestamps ([Runtime_events.Timestamp.to_int64]); the event's own timestamp
    is later. Numbers count from 0 on; one that is missing was not told, as only the last 1,024 stretches are kept
    between two calls of {!write}, or was taken by another caller of {!Outheap.helper_spans}. *)

val write : unit -> unit
(** Writes the figures once, where events are on ([Runtime_events.start], [OCAML_RUNTIME_EVENTS_START]); otherwise
    nothing is written, and what the helper did is forgotten. Any domain and thread. Cost: some thirty small events, and
    one for each stretch of the helper's work; the statistics take each space's lock once. *)

type t

val start : unit -> t
(** {!write} at the end of each major cycle from now on, until {!stop}. With OCaml 5.3 and later also only until the end
    of the domain that called this. *)

val stop : t -> unit
(** Twice is once. *)
