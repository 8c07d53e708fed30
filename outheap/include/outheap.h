/* SPDX-License-Identifier: MIT */
/* Outheap: pointers to memory outside OCaml's heap, and large pages under the heap.

   These functions are part of the runtime variant `_outheap`. A program that may also be linked with the stock runtime
   can declare those that it uses `__attribute__((weak))` and test their addresses. None of them runs the collector.
   Unless a function says otherwise, any thread may call it at any time, with or without OCaml's lock.

   Words used below. A *chunk* is 256 MiB of address space, aligned to its size; the *table* has one byte for each chunk
   of the user's address space. A *large page* is 2 MiB, aligned. A *value* is a pointer to a well-formed OCaml block
   that may be read. A *foreign* pointer leads to memory outside of OCaml; its low bit is clear. The result of an
   OCaml function that C called (caml_callback and the like), or of a domain, must have the second lowest bit clear too:
   there OCaml itself takes a pointer that is 2 modulo 4 for an exception. Everywhere else any even address will do. */
#ifndef OUTHEAP_H
#define OUTHEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTHEAP_VERSION "0.5.0"

/* The owner of an address. */
enum outheap_kind {
  OUTHEAP_UNKNOWN = 0, /* not known: the heap may be placed here later */
  OUTHEAP_MAJOR = 1,   /* the major heap, or memory where the marker follows pointers to it: outheap_allocate */
  OUTHEAP_YOUNG = 2,   /* the minor heaps */
  OUTHEAP_VALUES = 3,  /* values that the collector neither marks nor moves: static data, declared ranges */
  OUTHEAP_FOREIGN = 4  /* will never belong to the heap; the runtime does not look behind pointers to it */
};

/* Classifies any 64-bit pattern. Cost: a load, and for static data and foreign memory a binary search in a few
   ranges. */
enum outheap_kind outheap_classify(void const *address);

/* Declares that [begin, end) holds well-formed blocks with headers. Polymorphic comparison, hashing, marshalling,
   `Obj.tag` and so on then read them as they read static data. The collector neither marks nor scans them, so they must
   not point to the heap, unless that pointer is a registered root. Both ends are multiples of a word. Ranges may touch;
   a range that overlaps one declared before is refused. Result: 0, EINVAL (ends, overlap, part of it lies in OCaml's
   heap, or above the user's address space), ENOMEM. Cost: linear in the number of ranges,
   but constant for one above all others. */
int outheap_declare_values(void const *begin, void const *end);

/* Withdraws a declaration, or a part of it. The memory is foreign afterwards, and may be unmapped.
   Result: 0, EINVAL (not wholly declared), ENOMEM (a range had to be cut in two). */
int outheap_withdraw_values(void const *begin, void const *end);

/* Settings of this executable, as in the variable OUTHEAP, which comes after them. A program defines this in an object
   file of its own (of an archive, the linker takes only what is referred to):
     #include <outheap.h>
     char const outheap_defaults[] = "limit=cgroup,stats=USR2,stats.to=/run/statistics"; */
extern char const outheap_defaults[];

/* The value that counts of a setting, as it was given, also if it was refused: of all that the variant, the executable
   and OUTHEAP say, the last. Any thread. Result: *length bytes that stay; NULL: it is not set. Cost: all settings are
   compared. */
char const *outheap_setting(char const *name, size_t *length);

/* How comparison, hashing, marshalling, `Obj.tag`, the printing of exceptions and so on treat a pointer to foreign
   memory. Not opaque (the default): as on the stock runtime, a pointer to a block that C code made for OCaml, with a
   header of Caml_out_of_heap_header, leads to that block. Which it is, is seen from the word in front of the pointer;
   a naked pointer with a word there that looks like such a header is taken for a block. Opaque: foreign memory is never
   looked at, and the pointer counts as a number. The collector never looks there, either way.
   docs/reference/foreign-pointers.md has a table. The setting `opaque=1` does the same from the start. On OCaml 4.14,
   whose operations know foreign pointers, only the printing of exceptions and traces depends on this.
   Any thread, with or without the runtime lock; it takes effect for operations that begin later. Result: was it opaque
   before? Cost: a few stores. */
bool outheap_set_opaque(bool opaque);

/* Reserves address space for the heap, for the rest of the process. Other allocators can never use it, so pointers to
   memory that they allocate and free stay safe as long as the heap fits into the reservation. A further call adds to
   it.
   Result: 0, ENOMEM (address space, or its limit), EINVAL (zero, or more than the address space). Cost: a system
   call. */
int outheap_reserve(size_t bytes);

/* Memory of a kind, in large pages of its own, readable and writable, filled with zeroes. `kind`: OUTHEAP_MAJOR: the
   marker follows pointers to it and reads a header there, so the caller must lay out blocks (as Boxroot's pools do);
   OUTHEAP_VALUES: as if all of it were declared (an immobile heap); OUTHEAP_FOREIGN: never the heap's. `bytes` is
   rounded up to large pages; so is the alignment. Result: the memory, or NULL with errno = ENOMEM or EINVAL. */
void *outheap_allocate(enum outheap_kind kind, size_t bytes);

/* Frees such memory; `bytes` as it was requested. The address space keeps its kind, and is used again for that kind
   only. Values that were declared in it are withdrawn. Anything else than such memory in use is left alone. The caller
   must make sure that the collector finds no pointer to freed OUTHEAP_MAJOR memory. */
void outheap_free(enum outheap_kind kind, void *memory, size_t bytes);

/* Purges the memory that the heap does not use: it goes back to the system. Result: bytes. Also done after each
   compaction. Any thread, with or without the runtime lock. Cost: a system call for each free piece, some milliseconds
   for each gigabyte, in steps of 8 MB: others may allocate meanwhile, and a fork waits for a step. */
size_t outheap_trim(void);

/* The counters. tools/statistics writes the same list to the module Outheap. */
#define OUTHEAP_STATISTICS(X)                                                                           \
  X(chunks, "chunks of address space that belong to Outheap")                                           \
  X(chunks_tainted, "chunks left alone since the collector had found a pointer into them")              \
  X(reserved, "bytes of address space")                                                                 \
  X(reserved_ahead, "of these, by outheap_reserve or the setting, and not used yet")                    \
  X(committed, "bytes made accessible")                                                                 \
  X(resident_free, "of these, bytes not in use, but maybe resident")                                    \
  X(pools, "pools of the major heap in use")                                                            \
  X(pool_pages, "large pages that they are cut from")                                                   \
  X(blocks, "large blocks in use")                                                                      \
  X(block_bytes, "bytes in them")                                                                       \
  X(young, "bytes committed for minor heaps")                                                           \
  X(minor_grown, "times that a minor heap grew by itself (setting minor=adaptive)")                     \
  X(minor_shrunk, "times that one shrank")                                                              \
  X(minor_refused, "times that one could not grow")                                                     \
  X(ranges, "ranges of static data and declared values")                                                \
  X(commits, "system calls that commit memory")                                                         \
  X(purges, "system calls that return memory")                                                          \
  X(reservations, "system calls that reserve address space")                                            \
  X(advises, "system calls that advise on huge pages")                                                  \
  X(met_unknown, "times the collector found a pointer to memory that the table did not know")           \
  X(words_seen, "words that marking read; this and the next five: with the variant _outheap_count only") \
  X(words_immediate, "of these, immediates")                                                            \
  X(words_young, "young values")                                                                        \
  X(words_static, "static data and declared values")                                                    \
  X(words_foreign, "foreign pointers")                                                                  \
  X(lines_saved, "cache lines of static and foreign headers that were not read (estimate)")       \
  X(refused_zone, "times the heap was placed outside of its part of the address space")                 \
  X(refused_memory, "times the system had no address space or memory")                                  \
  X(refused_huge, "times the system refused advice on huge pages")

#define OUTHEAP_STATISTICS_FIELD(name, meaning) size_t name;
struct outheap_statistics { OUTHEAP_STATISTICS(OUTHEAP_STATISTICS_FIELD) };
#undef OUTHEAP_STATISTICS_FIELD

/* Any thread, with or without the runtime lock. Each counter is read by itself: of two that belong together one may be
   a moment older. Cost: a lock for each part of the heap, no system call: about a microsecond. */
void outheap_statistics(struct outheap_statistics *result);

/* The memory of the process, in bytes. */
struct outheap_memory {
  size_t used;   /* that only this process has in memory: the heap, malloc's; not files. `limit` is about it. An
                    estimate where the system does not tell */
  size_t limit;  /* the setting `limit`; 0: none */
  size_t live;   /* in blocks of the major heap at the end of the collector's last cycle, small and large, with what it
                    found to be garbage. 0 before the first one, and with OCaml 4.14 */
  size_t free;   /* resident, and free to be used again: in pools (after each domain's last slice), or not given back.
                    Never more than `used` */
  size_t pools;  /* for pools of small blocks: large pages that hold one */
  size_t blocks; /* in large blocks */
  size_t young;  /* for minor heaps */
};

/* Any thread, with or without the runtime lock. Cost: four system calls and a lock for each part of the heap: some
   microseconds. */
void outheap_memory(struct outheap_memory *result);

/* The report on naked pointers. While it is on, each pointer to foreign memory that marking finds is counted, and every
   `every`-th one is passed to `sample`, which must not call OCaml, allocate in its heap, or block. `every` = 0 ends the
   report; `sample` is not called any more when this function has returned. The setting `debug.report=N` does the same
   and prints the samples to standard error. Any thread, also in `sample`. `sample` is called on the threads that mark,
   which have the lock of a domain; several may call it at a time. Result: pointers found since the report began. Cost:
   it waits for each `sample` that runs. */
size_t outheap_report(size_t every, void (*sample)(void const *pointer, void const *data), void const *data);

/* Ends the helper (setting `helper`) for the rest of the process, and joins its thread; what it had begun the domains
   do. The reclaim thread (setting `memory`: there by default from a heap of 16 MB on) ends as well, and none begins;
   so does the thread that prints statistics on a signal or at intervals (setting `stats`). For a program that needs to
   have one thread: before unshare(CLONE_NEWUSER), or before it gives up privileges or restricts system calls, which
   both hold for single threads. Any thread. Nothing happens if there is none. Cost: it waits for the
   threads to end: some 0.1 ms of the helper's, a slice (2 ms) or a step of a purge (8 MB) of the reclaim thread's,
   statistics that are being printed. */
void outheap_stop_helper(void);

/* A stretch of the helper's work in which it did not wait. Times are nanoseconds of CLOCK_MONOTONIC, as those of
   runtime_events are. Stretches do not overlap. */
struct outheap_helper_span {
  size_t number;         /* from 0 on; what is missing in between nobody took in time */
  uint64_t began, ended; /* began <= ended */
  size_t work;           /* words marked, or pools swept; not 0 */
  bool marks;            /* it marked; otherwise it swept */
};

/* Takes the oldest such stretches that nobody has taken, `most` at most; the last 1,024 are kept. One that has not
   ended is not among them. Any thread, with or without the runtime lock. Result: how many; 0 without a helper. Cost: a
   lock, which the helper has for some instructions at a time, and a copy. */
size_t outheap_helper_spans(struct outheap_helper_span *spans, size_t most);

#ifdef __cplusplus
}
#endif
#endif
