/* SPDX-License-Identifier: MIT */
/* Outheap where memory comes from one area that grows at its end (`outheap-build --backend sbrk`; OH_SBRK): the
   function by which it grows. Nothing of this is in the ordinary variant.

   A program may define `outheap_sbrk` itself; otherwise there is a weak definition, which calls sbrk(2), or memory.grow
   on WebAssembly. */
#ifndef OUTHEAP_SBRK_H
#define OUTHEAP_SBRK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Moves the end of the area by `increment` bytes, and returns where it was; 0 only asks. (void *)-1: the area cannot
   grow, or shrink, by that, and nothing has changed.

   The library asks for multiples of the system's page at positive ends, and gives back (a negative increment) only what
   it was given last, while the end is still there; a function that refuses to shrink is fine. Memory reads as zeroes
   when the area grows, also when it has shrunk before, and stays where it is. Others may grow the area too, as malloc
   does with sbrk(2): the library takes no address that it was not given.

   Called with a lock of the library, so by one thread at a time; it may not call the library, nor allocate by OCaml.
   Where the area is shared with others, as sbrk(2) is with malloc, it is the function's task to exclude them. libc's
   sbrk cannot, so the weak definition refuses once the process has started a thread (glibc; where that cannot be asked,
   the program must not). */
void *outheap_sbrk(intptr_t increment);

#ifdef __cplusplus
}
#endif

#endif
