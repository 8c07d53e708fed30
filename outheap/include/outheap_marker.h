/* SPDX-License-Identifier: MIT */
/* Services of the runtime variant for libraries that keep OCaml values in memory of their own, and want to know when no
   pointer leads there any more: the library outheap.region is one. Declare what is used `__attribute__((weak))`, since
   the program may be linked with the stock runtime.

   Addresses are cut at chunks (256 MiB). Unless a function says otherwise, any thread may call it at any time, with or
   without OCaml's lock; none runs the collector or blocks. */
#ifndef OUTHEAP_MARKER_H
#define OUTHEAP_MARKER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Can this runtime tell which chunks were reached? Not on OCaml 4.14, nor in the variant _outheap_order. */
bool outheap_marker_can_tell(void);

/* Claims chunks for values that are neither marked nor moved: the runtime reads their headers where an operation asks
   for it, the collector never looks there. The memory need not be mapped yet. `start`: a multiple of 256 MiB; `bytes`
   is rounded up. A claim is for the rest of the process; it may be repeated. To be called before the collector can meet
   a pointer to the chunks. False: a part is beyond the address space, or was something else before. Cost: a
   compare-and-swap for each chunk. */
bool outheap_marker_claim(void const *start, size_t bytes);

/* Claims chunks in the same way, for cells that live and die one by one: the library outheap.hashcons has such.
   Each word has a reach bit, in one of two bitmaps: the first OUTHEAP_MARKER_MAP bytes of each chunk, and the next. The
   bit of the word at address a is number (a - chunk) / 8 % 64 of the 64-bit word (a - chunk) / 512, and is set
   atomically. Both maps must be readable and writable already, for the rest of the process. The first one is used.
   False as above, and where outheap_marker_can_tell() is false. outheap_marker_met and outheap_marker_clear mean
   nothing for these chunks. */
#define OUTHEAP_MARKER_MAP ((size_t)4 << 20)
bool outheap_marker_claim_cells(void const *start, size_t bytes);

/* From now on markers write to the maps of this number, 0 or 1. Only between two cycles (outheap_marker_on_cycle), or
   before there is a pointer to the chunks. */
void outheap_marker_use_map(void const *start, size_t bytes, int map);

/* From now on nothing reads these chunks, which were claimed: compare, hash and so on take a pointer to them for a
   number. For the rest of the process. */
void outheap_marker_revoke(void const *start, size_t bytes);

enum outheap_marker_by { OUTHEAP_MARKER_BY_ROOT = 1, OUTHEAP_MARKER_BY_BLOCK = 2 };

/* The reach bits of these chunks: from where markers found a pointer to one of them since they were cleared, as a sum;
   0: from nowhere. It means what it says at the moment between two cycles (outheap_marker_on_cycle), when the bits are
   those of a whole cycle. For tracked memory that was not reached since marking began: 0. */
unsigned outheap_marker_met(void const *start, size_t bytes);
void outheap_marker_clear(void const *start, size_t bytes);

/* Sets the reach bit as the marker would for this pointer: for those that appear from nowhere, such as what a handle
   gives out. If it leads to tracked memory, the caller holds OCaml's lock. */
void outheap_marker_meet(void const *pointer);

/* Counts the pointers to these chunks that markers find from now on; `bytes` = 0: to none. One piece of memory at a
   time. Result: pointers found to the piece before. */
size_t outheap_marker_watch(void const *start, size_t bytes);

/* Tracked memory: claimed chunks that the program writes to, so that words of it may come to hold pointers to the heap.
   Until now all pointers in it lead to itself, or to what the collector never frees. From now on caml_modify,
   caml_initialize, the atomic operations and Array.fill record which words hold pointers to outside; the runtime's
   deletion barrier and remembered set cover them as words of the heap. When the marker reaches the memory, those words
   are followed, as the fields of a large block are; compaction updates them. Weak pointers and keys of ephemerons that
   lead to memory that is not reached in a cycle are cleared.
   `start`: the beginning of a claim, that of no other tracked memory; `bytes`: the part that is written to. The
   memory counts as reached in this cycle. The caller holds OCaml's lock. False: no memory, not claimed, or not offered
   (outheap_marker_can_track). Cost: system calls; a bit for each word, whose pages are touched when they are needed. */
bool outheap_marker_can_track(void);
bool outheap_marker_track(void const *start, size_t bytes);

/* Is it a root: reached when marking begins in each cycle, without a reach bit? No, until this is called. To be called
   in `cycle`, or with OCaml's lock held; it holds when marking begins the next time, which after `cycle` is in the
   cycle that begins: at once up to OCaml 5.4, later in 5.5. */
void outheap_marker_keep(void const *start, bool keep);

/* The recorded words, without those that the last cycle has dropped because they hold something else now. With OCaml's
   lock, or in `cycle`. Cost: linear in them. */
size_t outheap_marker_tracked(void const *start);

/* The values in tracked memory are marked in pieces, in the course of the cycle in which the memory is reached
   first. Marks the next piece now. True: there are more. So a caller who lets others go on between two calls has it
   done before it stops all domains, for outheap_marker_untrack, which does what is left. The thread has a domain,
   which is not stopped. Cost: that of marking 4,096 fields. */
bool outheap_marker_hasten(void const *start);

/* Ends it: the words are followed no more, and may hold pointers that are not valid. In `cycle`; or while all domains
   are stopped, each of them has called outheap_marker_forget, and the memory was reached (outheap_marker_meet), so
   that what was read there stays valid. */
void outheap_marker_untrack(void const *start);

/* Takes these words out of the remembered set of the caller's domain, while all domains are stopped: no minor
   collection will look at them. */
void outheap_marker_forget(void const *start, size_t bytes);

/* `cycle` is called between two major cycles, by one domain while all are stopped; marking of the old cycle has ended,
   that of the new one has not begun (in OCaml 5.5 it begins in another stop). `cycled` is called soon after, while
   domains run again. Neither may call OCaml, allocate in its heap or wait for other threads that may be doing so. Add
   to `struct outheap_marker_cycle`, which must stay, and fill in the functions only. Result:
   outheap_marker_can_tell(). */
struct outheap_marker_cycle { void (*cycle)(void); void (*cycled)(void); struct outheap_marker_cycle *next; };
bool outheap_marker_on_cycle(struct outheap_marker_cycle *);

/* Does the marker follow this pointer (a word with a clear low bit)? Sets the reach bit of a claimed chunk. For
   code that marks in the runtime's place, on OCaml 5: it must not look at anything that is not followed. */
bool outheap_marker_follows(void const *pointer);

#ifdef __cplusplus
}
#endif
#endif
