/* SPDX-License-Identifier: MIT */
/* What the library needs from the operating system: address space, memory, the bounds of a stack, and a way to end the program
   with a message. Knows nothing of OCaml. */
#ifndef BXR_PLATFORM_H
#define BXR_PLATFORM_H

/* Names that are not part of the interface are those of the one compilation unit (all.c), so that two copies of the library, or two versions,
   never bind to each other; when a file is compiled alone, those of the shared object. */
#ifdef BXR_ONE_UNIT
#define BXR_INTERNAL static __attribute__((unused))
#define BXR_INTERNAL_DATA static
#define BXR_INTERNAL_DATA_HERE static
#else
#define BXR_INTERNAL __attribute__((visibility("hidden")))
#define BXR_INTERNAL_DATA extern __attribute__((visibility("hidden")))
#define BXR_INTERNAL_DATA_HERE
#endif

#include <stdbool.h>
#include <stddef.h>

/* `size` bytes of zeroes, aligned on `size` (a power of two and a multiple of the page size). NULL and errno == ENOMEM on failure.
   Cost: one to four system calls. */
BXR_INTERNAL void *bxr_os_reserve(size_t size);

/* Gives the memory of [start, start + size) back: bounds on page boundaries of the system. False when the system refuses (locked memory);
   the range holds what it held or zeroes then, zeroes otherwise. */
BXR_INTERNAL bool bxr_os_decommit(void *start, size_t size);

/* The size of the system's pages. Cost: a system call the first time. */
BXR_INTERNAL size_t bxr_os_page_size(void);

/* `size` bytes of zeroes for the library itself; NULL on failure. unmap also undoes bxr_os_reserve, as far as the system can. */
BXR_INTERNAL void *bxr_os_map(size_t size);
BXR_INTERNAL void bxr_os_unmap(void *start, size_t size);

/* Lets another thread run. */
BXR_INTERNAL void bxr_os_yield(void);

/* Whether `p` lies in the stack that the system gave this thread. Not known: where there is no way to ask, or the asking
   needs /proc or a file descriptor (the first thread's bounds) and they are not to be had now. Cost: a comparison; one to
   four system calls at first. */
typedef enum { BXR_OS_NO, BXR_OS_YES, BXR_OS_UNKNOWN } bxr_os_answer;
BXR_INTERNAL bxr_os_answer bxr_os_on_this_stack(void const *p);

/* This thread's name for bxr_os_await_progress; and whether it is the one that the process began with. */
BXR_INTERNAL long bxr_os_thread(void);
BXR_INTERNAL bool bxr_os_is_first_thread(void);

/* Waits until a thread of this process is past the instructions at which it was when the call began, be they a few tens:
   it has used 0.1 ms of processor time since, or sleeps in the kernel, or does not exist any more, or has set *ended
   (atomic). Gives up after a second, or, where the system does not tell about threads, after 20 ms. Needs `ended` to be
   valid until it returns. */
BXR_INTERNAL void bxr_os_await_progress(long thread, bool const *ended);

/* Prints "boxroot: " and the message on the standard error output and aborts. */
BXR_INTERNAL __attribute__((noreturn, format(printf, 1, 2))) void bxr_fault(char const *format, ...);

#endif
