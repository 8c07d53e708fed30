(* SPDX-License-Identifier: MIT *)

(** Out-of-heap memory and large pages, as seen from OCaml.

    Programs linked with the runtime variant [_outheap] have them. A program linked with the stock runtime runs too;
    {!available} tells which it is. *)

val available : bool
(** Is this program linked with the runtime variant? Without it: [classify] says [Unknown], statistics are zero,
    requests are refused. *)

(** The owner of a word. *)
type kind =
  | Immediate  (** an integer, or another constant *)
  | Unknown  (** not known *)
  | Major  (** the major heap *)
  | Young  (** a minor heap *)
  | Values  (** static data, and ranges declared to hold values: never marked or moved *)
  | Foreign  (** not OCaml's: the runtime does not read what it points to *)

val classify : Obj.t -> kind
(** The kind of any word. Cost: a load; for static data and foreign memory a binary search. *)

val reserve : int -> (unit, string) result
(** [reserve bytes] reserves address space for the heap, for the rest of the run, so that memory which other allocators
    allocate and free is never placed in it. A further call adds to it. *)

val set_opaque : bool -> bool
(** How comparison, hashing, marshalling, {!Obj.tag} and so on treat a pointer to foreign memory. [set_opaque false],
    the default: as on the stock runtime, it may lead to a block that C code made, which is recognised by its header.
    [set_opaque true]: foreign memory is never looked at, so that naked pointers of any kind are safe; they are equal if
    they are the same. Result: was it opaque before? With the stock runtime: [false], and nothing happens. The setting
    [opaque=1] does the same from the start. *)

val trim : unit -> int
(** Returns unused memory of the heap to the system, as {!Gc.compact} does. Result: bytes. *)

type statistics = {
  chunks : int;  (** chunks of address space that belong to Outheap *)
  chunks_tainted : int;  (** chunks left alone since the collector had found a pointer into them *)
  reserved : int;  (** bytes of address space *)
  reserved_ahead : int;  (** of these, by outheap_reserve or the setting, and not used yet *)
  committed : int;  (** bytes made accessible *)
  resident_free : int;  (** of these, bytes not in use, but maybe resident *)
  pools : int;  (** pools of the major heap in use *)
  pool_pages : int;  (** large pages that they are cut from *)
  blocks : int;  (** large blocks in use *)
  block_bytes : int;  (** bytes in them *)
  young : int;  (** bytes committed for minor heaps *)
  minor_grown : int;  (** times that a minor heap grew by itself (setting minor=adaptive) *)
  minor_shrunk : int;  (** times that one shrank *)
  minor_refused : int;  (** times that one could not grow *)
  ranges : int;  (** ranges of static data and declared values *)
  commits : int;  (** system calls that commit memory *)
  purges : int;  (** system calls that return memory *)
  reservations : int;  (** system calls that reserve address space *)
  advises : int;  (** system calls that advise on huge pages *)
  met_unknown : int;  (** times the collector found a pointer to memory that the table did not know *)
  words_seen : int;  (** words that marking read; this and the next five: with the variant _outheap_count only *)
  words_immediate : int;  (** of these, immediates *)
  words_young : int;  (** young values *)
  words_static : int;  (** static data and declared values *)
  words_foreign : int;  (** foreign pointers *)
  lines_saved : int;  (** cache lines of static and foreign headers that were not read (estimate) *)
  refused_zone : int;  (** times the heap was placed outside of its part of the address space *)
  refused_memory : int;  (** times the system had no address space or memory *)
  refused_huge : int;  (** times the system refused advice on huge pages *)
}

val statistics : unit -> statistics

type memory = {
  used : int;
      (** bytes that only this process has in memory: the heap, bigarrays, memory of C; not files. [limit] is
          compared with it; an estimate where the system does not tell *)
  limit : int;  (** the setting [limit]; 0: none *)
  live : int;
      (** bytes in blocks of the major heap at the end of the collector's last cycle, with what it found to be garbage;
          0 before the first one, and with OCaml 4.14 *)
  free : int;
      (** bytes that are in memory and free to be used again: in pools (as each domain's last slice has left them), or
          not given back yet; at most [used] *)
  pools : int;  (** bytes of large pages with pools of small blocks *)
  blocks : int;  (** bytes in large blocks *)
  young : int;  (** bytes for minor heaps *)
}

val memory : unit -> memory
(** The memory of this process; zeroes with the stock runtime. Cost: some microseconds. *)

type alarm

val on_pressure : ?at:float -> (memory -> unit) -> alarm option
(** [on_pressure f] calls [f] at the end of each cycle of the collector after which [used - free] is [at] of the limit
    or more (default 0.8): a cache can drop entries then. It is an alarm of {!Gc.create_alarm}: it runs in the domain
    that made it, wherever that allocates, as finalisers do, and what [f] raises comes out of there. So [f] should note
    that memory is short, and leave it to the program to act, unless it changes what nothing else does. Values dropped
    then are free one or two cycles later. [None] without a limit: nothing will be called.
    @raise Invalid_argument if [at] is not above 0 and at most 1. *)

val off_pressure : alarm option -> unit
(** Ends it. *)

val report : every:int -> int
(** Starts ([every = n > 0]: every nth is printed on standard error) or ends ([every = 0]) the report on foreign
    pointers that marking finds. Result: the number found since it began. For audits of bindings: see the setting
    [debug.report]. *)

val setting : string -> string option
(** The value that counts of a setting, as it was given: of all that the variant, the executable and the variable
    [OUTHEAP] say, the last. [None] if it is not set, and with the stock runtime. *)

val stop_helper : unit -> unit
(** Ends the helper (setting [helper]) for the rest of the process, and joins its thread; the domains go on with what it
    had begun. The reclaim thread (setting [memory], there by default from a heap of 16 MB on) ends as well, and none
    begins; so does the thread that prints statistics on a signal or at intervals (setting [stats]). For a program that
    has to have one thread for a moment: before [unshare], or before it gives up privileges or restricts system calls
    where that holds for the calling thread alone. Without a helper nothing happens. Cost: some 0.1 ms. *)

(** A stretch of the helper's work in which it did not wait. *)
type helper_span = {
  number : int;  (** from 0 on; what is missing in between nobody took in time *)
  began : int;  (** nanoseconds, of the clock of [Runtime_events.Timestamp] *)
  ended : int;
  work : int;  (** words marked, or pools swept; above 0 *)
  marks : bool;  (** it marked; otherwise it swept *)
}

val helper_spans : unit -> helper_span array
(** The helper's work since the last call, each stretch once, the oldest first; the last 1,024 at most, and none
    that has not ended. Any domain. Empty without a helper. Cost: a lock, and 50 bytes for each. *)
