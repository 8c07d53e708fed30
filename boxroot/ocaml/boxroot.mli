(* SPDX-License-Identifier: MIT *)

(** Movable GC roots for foreign code, seen from OCaml.

    Roots belong to stubs in C, C++ or Rust, which use them through the header [boxroot.h] of this library; OCaml code
    has no use for them, since the collector keeps its values alive already. OCaml code can look at the status and the
    statistics of the library.

    The library is set up by the first root. There is no tear-down here: it would invalidate the roots that foreign code
    still holds, so foreign code has to call it ([boxroot_teardown]). *)

type status =
  | Not_setup  (** no root was ever created *)
  | Running
  | Torn_down  (** by [boxroot_teardown]; no root can be created until {!setup} is called *)

val status : unit -> status
(** The state of the library. Any domain may call it at any time. *)

val setup : unit -> (unit, string) result
(** Prepares the library, or starts it again after a tear-down; does nothing when it is running. Calling it is optional
    except in one case: with OCaml 4.14, before foreign threads delete roots while no root has been created yet. Error:
    the reason, from [boxroot_error_string]. *)

(** Counters since the start of the program, summed over all domains. They are always on and cost nothing on the inline
    paths. *)
type stats = {
  pool_bytes : int;  (** size of a pool *)
  pool_capacity : int;  (** roots per pool *)
  bytes_reserved : int;  (** address space taken from the system *)
  pools_in_use : int;  (** pools that hold, or are about to hold, roots *)
  pools_peak : int;  (** sum over domains of the most pools each has had in use *)
  pools_purged : int;  (** times the memory of a pool was purged *)
  pools_adopted : int;  (** pools adopted from domains that ended *)
  roots_last_cycle : int;  (** live roots at the start of the last major cycle (OCaml 5), an upper bound *)
  create_slow : int;  (** creations that left the inline path *)
  delete_slow : int;  (** deletions that left the inline path, on the owning domain *)
  delete_remote : int;  (** deletions carried out that came without the owner's lock, in a scan, or while marking *)
  modify_slow : int;  (** modifications that left the inline path *)
  barrier : int;  (** values darkened because their root was modified while marking was under way (OCaml 5) *)
  darkened_pools : int;  (** pools whose values the library marked itself (OCaml 5) *)
  minor_scans : int;  (** minor collections in which roots were scanned *)
  minor_slots : int;  (** slots looked at in them *)
  major_starts : int;  (** starts of a major cycle that handed pools to the marker (OCaml 5) *)
  other_scans : int;  (** other visits of all roots: compaction, heap verification, marking in OCaml 4.14 *)
}

val stats : unit -> stats
(** A snapshot; counters of running domains may lag. Cost: one pass over the records of all domains that there can
    be. *)

val print_stats : unit -> unit
(** The same, in words, on the standard output (after flushing {!Stdlib.stdout}). *)

(** {1 Who holds OCaml values}

    The header [boxroot/report.h] says what is in a report, and what it costs. *)

val report : ?file:string -> unit -> (unit, string) result
(** Reports now who holds OCaml values, with changes since the last report: on the standard error output, or appended to
    the file. Sets the library up. Error: the reason, in the words of the system. *)

val sample : int -> (unit, string) result
(** [sample n]: from the next minor collection on, the calls that create a root are recorded for one creation in [n],
    for reports; [0] ends it. Error: the reason; also for a negative number. *)
