/* SPDX-License-Identifier: MIT */
/* Reads a word that may not be there.

   A single load instruction does it. The first call installs handlers of SIGSEGV and SIGBUS, which turn a fault at this
   instruction into the result `false` and pass every other signal on to the handlers that were there. So a program that
   never asks has none. A program that replaces these handlers afterwards, or blocks the signals, ends at a fault, as it
   would without this function. On processors other than x86-64 and arm64 the kernel is asked (process_vm_readv), which
   takes a system call each time; where there is no such call, no word is there.

   Source of the idea: HotSpot's SafeFetch. */
#ifndef OH_PEEK_H
#define OH_PEEK_H

#include <stdbool.h>
#include <stdint.h>

/* The word at an address, any 64-bit pattern. False: it cannot be read. Any thread; takes no lock, except in the first
   call; not in signal handlers. */
bool oh_peek(uintptr_t address, uintptr_t *word);

#endif
