/* SPDX-License-Identifier: MIT */
/* The header in front of a pointer: may it be read? And a word that may not be there, read without a fault. */
#ifndef OH_HEADER_H
#define OH_HEADER_H

#include "table.h"

/* --- headers ------------------------------------------------------------------------------------------------------ */

/* May an operation of the runtime, such as comparison, read the header in front of this pointer? The collector asks
   pointer.h instead.

   Yes for the heap, static data, declared values, and regions that are not revoked. A pointer to other memory leads to
   a block that C code made for OCaml (its header is one of Caml_out_of_heap_header, so black), or is a naked pointer.
   Stock OCaml 5 allows the former only, and reads the header. Here, by default, the word in front of the pointer is
   looked at (oh_peek), and the pointer leads to a block if that word can be read and is black. A naked pointer may pass
   that test by chance. So there is the other choice, *opaque*: memory that is neither the heap's nor declared is never
   looked at. */

/* Of the header's bits: those of the colour. They are set in the headers of blocks that the collector passes over. */
#define OH_HEADER_BLACK ((uintptr_t)3 << 8)

/* The program's image of static data, a part of the address space that can be read; empty if there is none, or when
   foreign pointers are opaque. Addresses of pointers to blocks: it begins a word behind the memory. */
struct oh_header_image { uintptr_t begin, words; };
extern struct oh_header_image oh_header_image;

/* What is not in the heap, and not seen at once to be static data. Takes no lock. Cost: a call and a load; where that
   does not tell, a binary search in ranges.h. */
bool oh_header_exists_slow(uintptr_t address);

static inline bool oh_header_exists(uintptr_t address)
{
  if (__builtin_expect(oh_kind_is_heap(oh_table_kind(address)), 1)) return true;
  /* in words, rotated: so an address that is not aligned is out of range */
  uintptr_t d = address - oh_load_relaxed(&oh_header_image.begin);
  if ((d >> 3 | d << (sizeof d * 8 - 3)) < oh_load_relaxed(&oh_header_image.words) &&
      (~((uintptr_t const *)address)[-1] & OH_HEADER_BLACK) == 0)
    return true;
  return oh_header_exists_slow(address);
}

/* Tells the image: memory, in whole words, that can be read for the rest of the process. Once, when the program
   starts. */
void oh_header_set_image(uintptr_t begin, uintptr_t end);

/* Are foreign pointers opaque from now on? Result: were they before. Any thread. */
bool oh_header_set_opaque(bool opaque);

/* --- words that may not be there ---------------------------------------------------------------------------------- */

/* Reads a word that may not be there.

   A single load instruction does it. The first call installs handlers of SIGSEGV and SIGBUS, which turn a fault at this
   instruction into the result `false` and pass every other signal on to the handlers that were there. So a program that
   never asks has none. A program that replaces these handlers afterwards, or blocks the signals, ends at a fault, as it
   would without this function. On processors other than x86-64 and arm64 the kernel is asked (process_vm_readv), which
   takes a system call each time; where there is no such call, no word is there.

   Source of the idea: HotSpot's SafeFetch. */

/* The word at an address, any 64-bit pattern. False: it cannot be read. Any thread; takes no lock, except in the first
   call; not in signal handlers. */
bool oh_peek(uintptr_t address, uintptr_t *word);

#endif
