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

/* Whether `p` lies in the stack that the system gave this thread. Not known: where there is no way to ask, or the asking
   needs /proc or a file descriptor (the first thread's bounds) and they are not to be had now. Cost: a comparison; one to
   four system calls at first. */
typedef enum { BXR_OS_NO, BXR_OS_YES, BXR_OS_UNKNOWN } bxr_os_answer;
bxr_os_answer bxr_os_on_this_stack(void const *p);

/* This thread's name for bxr_os_await_progress; and whether it is the one that the process began with. */
long bxr_os_thread(void);
bool bxr_os_is_first_thread(void);

/* Waits until a thread of this process is past the instructions at which it was when the call began, be they a few tens:
   it has used 0.1 ms of processor time since, or sleeps in the kernel, or does not exist any more, or has set *ended
   (atomic). Gives up after a second, or, where the system does not tell about threads, after 20 ms. Needs `ended` to be
   valid until it returns. */
void bxr_os_await_progress(long thread, bool const *ended);

/* Prints "boxroot: " and the message on the standard error output and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void bxr_fault(char const *format, ...);

#endif
