/* SPDX-License-Identifier: MIT */
/* Outheap: memory outside OCaml's heap, and large pages under it.

   These functions are part of the runtime variant `_outheap`; a program that may also be linked with the stock runtime can declare the
   ones it uses `__attribute__((weak))` and test their addresses. None of them runs the collector. Unless a function says otherwise, any
   thread may call it at any time, with or without OCaml's lock.

   Words used below. A *chunk* is 256 MiB of address space, aligned to its size; the *table* has one byte for each chunk of the user's
   address space. A *large page* is 2 MiB, aligned. A *value* is a pointer to a well-formed OCaml block that may be read. */
#ifndef OUTHEAP_H
#define OUTHEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTHEAP_VERSION "0.5.0"

/* What an address belongs to. */
enum outheap_kind {
  OUTHEAP_UNKNOWN = 0, /* nobody's yet: the heap may still come to lie here, unless it was tainted or space was reserved */
  OUTHEAP_MAJOR = 1,   /* the major heap, or memory that the marker follows: outheap_allocate */
  OUTHEAP_YOUNG = 2,   /* the minor heaps */
  OUTHEAP_VALUES = 3,  /* values that the collector neither marks nor moves: static data, declared ranges */
  OUTHEAP_FOREIGN = 4  /* will never belong to the heap; the runtime does not look behind pointers to it */
};

/* Classifies any 64-bit pattern. Cost: a load, and for static data and foreign memory a binary search in a few ranges. */
enum outheap_kind outheap_classify(void const *address);

/* Declares that [begin, end) holds well-formed blocks with headers, so that polymorphic comparison, hashing, marshalling, `Obj.tag` and
   the like read them, as they read static data. The collector leaves them alone; a pointer from them to the heap is not followed, so there
   must not be any, other than through a registered root. Both ends are multiples of a word. Ranges may touch; a range that overlaps one declared before is refused.
   Result: 0, EINVAL (ends, overlap, part of it lies in OCaml's heap, or above the user's address space), ENOMEM. Cost: linear in the number of ranges. */
int outheap_declare_values(void const *begin, void const *end);

/* Takes back what was declared, or a part of it. The memory is foreign afterwards: pointers to it are harmless, but opaque.
   Result: 0, EINVAL (not wholly declared), ENOMEM (a range had to be cut in two). */
int outheap_withdraw_values(void const *begin, void const *end);

/* Reserves address space for the heap, for the rest of the process: memory that other allocators give and take back can never come to lie in it, so
   pointers to such memory stay harmless as long as the heap fits. Asking again adds to it.
   Result: 0, ENOMEM (address space, or its limit), EINVAL (zero, or more than the address space). Cost: a system call. */
int outheap_reserve(size_t bytes);

/* Memory of a kind, in large pages of its own, readable and writable, filled with zeroes. `kind`: OUTHEAP_MAJOR: the marker follows
   pointers to it and reads a header there, so the caller lays out blocks (Boxroot's pools are such); OUTHEAP_VALUES: as if the whole
   was declared (an immobile heap); OUTHEAP_FOREIGN: never the heap's. `bytes` is rounded up to large pages; alignment is theirs.
   Result: the memory, or NULL with errno = ENOMEM or EINVAL. */
void *outheap_allocate(enum outheap_kind kind, size_t bytes);

/* Gives such memory back; `bytes` as it was asked for. The address space keeps its kind, and will be used again for that kind only.
   Values that were declared in it are withdrawn; anything that is not such memory, in use, is left alone.
   The caller sees to it that the collector meets no pointer to freed OUTHEAP_MAJOR memory. */
void outheap_free(enum outheap_kind kind, void *memory, size_t bytes);

/* Gives memory that the heap does not use back to the system. Result: bytes. Also done after each compaction. */
size_t outheap_trim(void);

struct outheap_statistics {
  size_t chunks, chunks_tainted;       /* chunks of ours; chunks left alone since the collector had met a pointer into them */
  size_t reserved, reserved_ahead;     /* bytes of address space; of these, by outheap_reserve or the setting, and not used yet */
  size_t committed, resident_free;     /* bytes made readable; of those not in use, bytes not given back to the system */
  size_t pools, pool_pages;            /* OCaml's pools in use; large pages that they are cut from */
  size_t blocks, block_bytes;          /* large blocks in use, and their size */
  size_t young;                        /* bytes committed for minor heaps */
  size_t ranges;                       /* ranges of static data and declared values */
  size_t commits, decommits, reservations, advises; /* system calls, by purpose */
  size_t met_unknown;                  /* times the collector met a pointer to memory that the table did not know */
  /* Of the flavour `_outheap_count`, otherwise 0: words that marking looked at, and those that it passed over, by reason; */
  size_t words_seen, words_immediate, words_young, words_static, words_foreign;
  size_t lines_saved; /* distinct cache lines of static and foreign headers that were not read, summed over slices (estimate) */
};
void outheap_statistics(struct outheap_statistics *result);

/* The report on naked pointers: while it is on, each pointer to foreign memory that marking meets is counted, and every `every`-th one is
   passed to `sample`, which must not call OCaml, allocate in its heap, or block. `every` = 0 ends the report; `sample` is not called any more when this
   function has returned. Also with the setting `report=N`, which prints samples to
   standard error. Result: pointers met since the report began. */
size_t outheap_report(size_t every, void (*sample)(void const *pointer, void const *data), void const *data);

#ifdef __cplusplus
}
#endif
#endif
