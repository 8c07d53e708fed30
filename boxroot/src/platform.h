/* SPDX-License-Identifier: MIT */
/* What the library needs from the operating system: address space, memory, the bounds of a stack, and a way to end the program
   with a message. Knows nothing of OCaml. */
#ifndef BXR_PLATFORM_H
#define BXR_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>

/* `size` bytes of zeroes, aligned on `size` (a power of two and a multiple of the page size). NULL and errno == ENOMEM on failure.
   Cost: one to four system calls. */
void *bxr_os_reserve(size_t size);

/* Gives the memory of [start, start + size) back; the range reads as zeroes afterwards. Bounds on page boundaries. */
void bxr_os_decommit(void *start, size_t size);

/* Lets another thread run. */
void bxr_os_yield(void);

/* Whether `p` lies in the stack of this thread; false when that is not known. */
bool bxr_os_on_this_stack(void const *p);

/* Where a piece of code is, in words: function (when the dynamic linker knows it), module, offset in the module as addr2line wants it. */
void bxr_os_describe_code(void const *p, char *text, size_t size);

/* The return addresses of the calls that this thread is in, innermost first, at most `most`; how many. 0 where the C library cannot tell.
   Takes microseconds, and may allocate at its first use. */
int bxr_os_stack(void **addresses, int most);

/* Prints "boxroot: " and the message on the standard error output and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void bxr_fault(char const *format, ...);

#endif
