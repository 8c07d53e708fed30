/* SPDX-License-Identifier: MIT */
/* Threads, as the operating system sees them. Knows nothing of OCaml. */
#ifndef BXR_THREAD_H
#define BXR_THREAD_H

#include "base.h"

/* Lets another thread run. */
BXR_INTERNAL void bxr_thread_yield(void);

/* Whether `p` is in the stack that the system gave this thread. Unknown: where there is no way to ask, or where asking
   needs /proc or a file descriptor (the first thread's bounds) and they are not available now. Cost: a comparison; one
   to four system calls at first. */
typedef enum { BXR_THREAD_NO, BXR_THREAD_YES, BXR_THREAD_UNKNOWN } bxr_thread_answer;
BXR_INTERNAL bxr_thread_answer bxr_thread_stack_has(void const *p);

/* This thread's name for bxr_thread_await_progress; and whether it is the one that the process began with. */
BXR_INTERNAL long bxr_thread_id(void);
BXR_INTERNAL bool bxr_thread_is_first(void);

/* The number of threads of this process; 0: not known. */
BXR_INTERNAL unsigned long bxr_thread_count(void);

/* Waits until a thread of this process is past the instructions at which it was when the call began, at most a few tens
   of them: it has used 0.1 ms of processor time since, or sleeps in the kernel, or does not exist any more, or has set
   *ended (atomic). Gives up after a second, or, where the system does not tell about threads, after 20 ms. Needs
   `ended` to be valid until it returns. */
BXR_INTERNAL void bxr_thread_await_progress(long thread, bool const *ended);

#endif
