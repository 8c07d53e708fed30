(* SPDX-License-Identifier: MIT *)

(** Regions: OCaml data outside the heap, which the collector neither marks nor moves.

    A region holds a copy of a value with all that it refers to. It costs a major cycle nothing, is not copied by [fork]
    when a child collects, can be saved to a file that other processes map in no time and share, and gives its memory
    back when it is not used any more. Its data are ordinary values, to be read with ordinary code: pattern matching,
    [Hashtbl.find], comparison. They are {b read-only}, unless [~writes:`Track] asks for something else: a program that
    writes to them (a [ref], an array, a [Hashtbl]) dies with SIGSEGV; with the setting [OUTHEAP=debug.faults=report],
    which is the default with a debug runtime, it says so first.

    With OCaml 5 (5.1 to 5.5) and the runtime variant [_outheap], a region ends when no pointer leads to it, or by
    {!delete} or {!revoke}. The collector is told of each region and its size, and runs the sooner; before {!copy},
    {!map} or {!save} gives up for want of memory or addresses, it runs three major cycles, or six, and tries again.
    With the stock runtime and with OCaml 4.14, regions live until exit. [docs/guide/regions.md] has the details. All
    functions may be called from any domain and thread. *)

type t
(** A region, or rather a handle for it: while there is one, the region does not end by itself. Comparison and hashing
    are by identity. *)

type 'a root
(** A value of type ['a] in a region, with a handle for the region. *)

type source =
  | Roots  (** stacks, registers, global variables, roots of C code *)
  | Heap  (** blocks of the heap *)
  | Regions  (** images that need this one, and calls that are reading it *)

type error =
  | Unsupported of string  (** not with this runtime, or not possible; why *)
  | No_memory  (** also after a collection, where regions can end; so it is with [Too_many] *)
  | Too_many  (** 32,768 regions, or no address space *)
  | Refused of { kind : string; identifier : string; path : string }
      (** The value refers to something that cannot be copied. [kind]: ["closure"], ["object"], ["lazy"], ["abstract"],
          ["custom"], ["continuation"], ["extension constructor"], ["foreign pointer"]; [identifier]: of a custom
          block, or the name of an exception; [path]: the fields that lead there, as [.2.0\[17\]]. *)
  | In_use of { pointers : int; from : source list }
      (** The marker has found so many pointers in a whole major cycle, from there. Nothing happened. *)
  | Ended  (** the region was deleted or revoked before *)
  | System of { file : string; call : string; message : string }
      (** [file], here and below: the path that {!save} or {!map} was given, of a long one the last 255 bytes; of other
          functions: empty *)
  | Damaged of { file : string; what : string }  (** no image, or not as it was written; what is wrong *)
  | Other_program of { file : string; what : string; identifier : string; wanted : string }
      (** an image of another version of OCaml ([identifier], not [wanted]), or with custom blocks that this program
          does not know *)
  | Other_schema of { file : string; name : string; version : int; wanted_name : string; wanted_version : int }
      (** what the image holds, and what was asked for *)
  | Missing of { file : string; digest : string }
      (** an image that this one needs is not mapped: its digest, in hexadecimal *)

val error_to_string : error -> string
(** A line of text: which file, or which part of the value; what was wanted, and what was found. *)

exception Deleted
(** The region was deleted or revoked. *)

val can_delete : bool
(** Can this runtime tell whether a region is in use? Otherwise {!delete} and {!revoke} return [Unsupported]. *)

(** {1 Making and reading} *)

val copy :
  ?sharing:[ `Keep | `Max ] ->
  ?closures:bool ->
  ?writes:[ `Refuse | `Track ] ->
  ?exclusive:bool ->
  'a ->
  ('a root, error) result
(** [copy v] copies [v] and all that it refers to into a new region. The source stays as it is, whatever happens.

    Copied are: records, variants, tuples, arrays, lists, strings, floats, closed hash tables, maps; int32, int64,
    nativeint; bigarrays, with their data (those of [Unix.map_file] become ordinary ones); custom blocks of types that
    were registered (outheap_region.h); static constants; values of other regions, so that the copy needs none of these.
    A forced lazy value becomes its value. Predefined exceptions ([Not_found], [Failure "…"], …) can be matched
    afterwards, in native code; in bytecode their constructors are in the heap, where they may move. Such constructors
    are refused: those of a program's own exceptions, and of extensible types, always. Refused are functions and
    objects, unless [closures] is true (then the program's static functions stay where they are); and always: lazy
    values that are not forced (but see [`Track]), abstract blocks, other custom blocks (channels, mutexes, …),
    continuations.

    [sharing]: [`Keep] (default) keeps sharing and cycles. [`Max] also makes equal blocks one, of whatever type, mutable
    ones included: for data that are compared with [=] and not with [==].

    [writes]: with [`Refuse] (default) the copy is read-only. With [`Track] the program may write to it, as to any
    value: fields, references, arrays, hash tables, atomics. Stored values stay alive while the region is in
    use, that is, reachable or with handles. So lazy values can be forced in the region; those that are not forced yet
    are copied too, with [~closures:true], since they are closures. Needs OCaml 5 with the variant _outheap, otherwise
    [Unsupported]; so is [`Track] with [`Max], which would merge what is to be changed. C code writes with
    [caml_modify], [caml_initialize] or [Store_field], as to the heap. Two more differences: weak pointers do not keep
    such a region, but are cleared when nothing else leads to it; and what a region refers to counts for {!delete}: one
    whose values lead back to it through the heap is in use. Without handles such a ring ends by itself.

    The copy is that of a moment, whatever other domains and threads do. They are stopped for the first 2 ms of copying;
    if these are not enough, a second process is started, which copies its own view of the program's memory, while all
    but the caller go on. They wait until it is there: some 30 ms for each GiB that the program has in pages of 4 KiB,
    not for what is in huge pages or in regions. The program does not notice the process: no SIGCHLD, no child for
    [wait], no [at_exit], no handlers of [pthread_atfork], no files kept open. Pages that the program writes meanwhile
    are held twice, and so is what is copied; the second process is the first to be killed if memory runs out.
    Without a second process (a limit, a filter of system calls, one that was killed, bigarrays over files or memory of
    C code, ThreadSanitizer), and if the program has no other threads, all others wait for the whole copy. So they do
    with [exclusive] (default: false), with which the call itself takes less time and memory; a sandbox that kills a
    program for [clone] or [memfd_create] needs it, too. {!stats} says what happened.

    No recursion, so no limit on depth. Cost: some nanoseconds for each word; a pointer's worth of memory for each block
    meanwhile. *)

val get : 'a root -> 'a
(** The value. It may be kept anywhere, as any value; while a pointer to it is reachable the region does not end, unless
    it is revoked. @raise Deleted if it was deleted or revoked. Cost: some nanoseconds. *)

val region : 'a root -> t

(** {1 Ending} *)

val delete : t -> (unit, error) result
(** Runs three major cycles, and deletes the region if the marker finds no pointer to it in a whole one, whatever
    handles there are: {!get} raises {!Deleted} from then on. Otherwise the result is [Error (In_use _)], and nothing
    happens. Needed only when the memory shall be free at a certain moment: without handles and pointers, a region ends
    by itself, at the end of a major cycle.

    If there are pointers, values that wait for their finalisers may hold them. So it runs [Gc.full_major], which calls
    finalisers, and tries once more. An exception that one of them raises passes through; then nothing was deleted.
    Finalisers of values that were found dead in the cycles that have deleted the region run later, as after any
    collection. Cost: three major cycles; nine if the region is in use.

    A value that was just used may still be in a register or on the stack of the caller. A part of a bigarray of the
    region ([sub], [slice], …) counts as a pointer from the heap, for {!revoke} too. *)

val revoke : t -> (unit, error) result
(** Makes the memory inaccessible at once. {!get} raises {!Deleted}. Pointers that are left are harmless to the
    collector; comparison, hashing, marshalling and so on take them for opaque pointers; a read by OCaml code is a
    SIGSEGV. The addresses are not used again: a process can revoke 16 TiB, with a region's size rounded up to 256 MiB.
    Nothing stays mapped. The result is [Error (In_use _)] while an image that needs it is alive (end that one first) or
    another domain writes or maps one, or there are parts of its bigarrays. A region that is written to is revoked while
    all other domains are stopped. C code that is reading it at that moment on another domain, such as a comparison,
    dies as OCaml code does. For programs that know what they are doing, such as one whose index is replaced under load
    after a grace period. *)

(** {1 Images} *)

type 'a schema
(** An image's contents: a name, and a version, which the program changes when the type changes. The caller vouches for
    the type, as with [Marshal]. *)

val schema : name:string -> version:int -> 'a schema
(** [name]: 1 to 127 bytes, none of them zero. @raise Invalid_argument for another name. *)

val save :
  ?sharing:[ `Keep | `Max ] ->
  ?needs:t list ->
  ?exclusive:bool ->
  'a schema ->
  path:string ->
  'a ->
  (unit, error) result
(** Writes a value to a file, which appears at once and whole: it is synchronised before it has that name. A new file
    has the mode that the process creates files with; where there was one, its mode, group and owner are kept, as far as
    the process may give the file away (access control lists are not). A symbolic link at [path] is replaced by the
    file, and other hard links keep what they have; a device, pipe or socket is refused. Nothing is left behind by a
    process that is killed, unless the file system has no files without a name, or there is no /proc: then the file is
    called [.outheap-image-] and sixteen digits, in the same folder, until it is renamed. As {!copy}, but functions,
    objects and exceptions are always refused. [sharing]: as for {!copy}; with [`Max], also blocks that are equal to one
    of [needs] are not written (if these were saved with [`Max] as well). [needs]: regions that were mapped from images,
    without [`Track]; values in these are referred to, not copied, and an image can be mapped only while those that it
    needs are. A value in a region that is written to is saved as it is at that moment, with what it refers to in the
    heap. Cost: as {!copy}, for which others wait as they do there, [exclusive] included; then a digest of the data, and
    the writing, beside them. *)

val map :
  'a schema ->
  path:string ->
  ?verify:[ `Header | `Full ] ->
  ?writes:[ `Refuse | `Track ] ->
  unit ->
  ('a root, error) result
(** Maps an image. Its pages are read when they are touched, and shared with all processes that map it. [verify]:
    [`Header] (default) checks that the file is an image of that schema for this version of OCaml, is as long as it
    should be, and that its header is not damaged. [`Full] reads all of it, and checks the digest and every block:
    then no address in the file leads astray, though its type is still what the caller says. The file must not be
    changed in place while it is mapped; replace it by renaming, as {!save} does. An image that is mapped already is
    not mapped twice.

    [writes]: [`Track] as for {!copy}. Written pages are private to this process; the others stay
    shared. Such a mapping belongs to its caller: it is not found by later calls, and cannot be one of [needs]. The
    second one of the same file is relocated.

    Where the image's own place in the address space is taken, it is relocated: then its pages are private to the
    process, and all are touched. Cost: some system calls and 4 KiB that are read; [`Full], custom blocks and
    relocation: more. *)

val map_part :
  'a schema ->
  path:string ->
  ?verify:[ `Header | `Full ] ->
  ?writes:[ `Refuse | `Track ] ->
  offset:int ->
  unit ->
  ('a root, error) result
(** The same for an image that is a part of a larger file, and begins at a multiple of 64 KiB. [Damaged] if the file
    ends before it. @raise Invalid_argument for another offset. *)

(** {1 Questions} *)

val is_in_region : Obj.t -> bool
(** Is this a block of some region that is alive? Cost: some nanoseconds. *)

val address : Obj.t -> nativeint
(** The address of a block; 0 for an immediate. Only those of regions and static data stay what they are. *)

val contains : t -> Obj.t -> bool
(** Is this a block of the region? *)

type state = Live | Ending | Over | Revoked

type info = {
  state : state;
  bytes : int;  (** mapped *)
  words : int;  (** of data, headers included *)
  blocks : int;
  address : int;  (** half of it *)
  digest : string;  (** of an image: 16 bytes; otherwise empty *)
  relocated : bool;
  tracked : int;
      (** with [`Track]: words that a pointer to outside was stored in; those that hold something else now are dropped
          in the next major cycle. Otherwise -1 *)
}

val info : t -> info

type stats = {
  live : int;  (** regions *)
  live_bytes : int;
  revoked : int;
  resting : int;  (** ended; their addresses wait for a major cycle before they are used again *)
  deleted : int;  (** since the program began *)
  unused : int;  (** ended by themselves, since the program began *)
  second : int;  (** copies and files made by a second process, since the program began *)
  longest_wait : int;  (** nanoseconds for which others waited for a copy or file, the longest since it began *)
}

val stats : unit -> stats
