(* SPDX-License-Identifier: MIT *)

(** Out-of-heap memory and large pages, as seen from OCaml.

    A program links the runtime variant [_outheap] to have them; linked with the stock runtime, it runs all the same, and {!available} tells. *)

val available : bool
(** Is this program linked with the runtime variant? Without it: [classify] says [Unknown], statistics are zero, requests are refused. *)

(** What a word belongs to. *)
type kind =
  | Immediate  (** an integer, or another constant *)
  | Unknown  (** no one's yet *)
  | Major  (** the major heap *)
  | Young  (** a minor heap *)
  | Values  (** static data, and ranges declared to hold values: never marked or moved *)
  | Foreign  (** not OCaml's: the runtime does not look behind it *)

val classify : Obj.t -> kind
(** Any word whatsoever. A load; for static data and foreign memory a binary search. *)

val reserve : int -> (unit, string) result
(** [reserve bytes] keeps address space for the heap, for the rest of the run, so that memory which other allocators give
    and take back never comes to lie in it. Asking again adds to it. *)

val trim : unit -> int
(** Gives unused memory of the heap back to the system; {!Gc.compact} does so by itself. Result: bytes. *)

type statistics = {
  chunks : int;  (** of 256 MiB of address space *)
  chunks_tainted : int;  (** left alone: the collector had met a pointer to them before *)
  reserved : int;  (** bytes of address space *)
  reserved_ahead : int;  (** of these, not used yet *)
  committed : int;  (** bytes that can be written *)
  resident_free : int;  (** of these, not in use, but not given back to the system *)
  pools : int;
  pool_pages : int;
  blocks : int;
  block_bytes : int;
  young : int;
  ranges : int;
  commits : int;
  decommits : int;
  reservations : int;
  advises : int;
  met_unknown : int;  (** pointers to unknown memory that marking met *)
  words_seen : int;  (** this and what follows: with the variant [_outheap_count] only *)
  words_immediate : int;
  words_young : int;
  words_static : int;
  words_foreign : int;
  lines_saved : int;
}

val statistics : unit -> statistics

val report : every:int -> int
(** Starts ([every > 0]: each so-manyth is printed on standard error) or ends ([every = 0]) the report on foreign pointers that marking meets.
    Result: the number met since it began. For audits of bindings: see the setting [report]. *)

val settings : unit -> string
(** The environment variable [OUTHEAP] of this process. *)
