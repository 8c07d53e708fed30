/* SPDX-License-Identifier: MIT */
/* The operating system: memory, threads, and the shared object that the library is part of. Nothing here knows of
   OCaml. */
#ifndef BXR_OS_H
#define BXR_OS_H

#include "base.h"

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Returns `size` bytes of zeroes, aligned on `size` (a power of two and a multiple of the page size), from the
   operating system, or from Outheap where its runtime is linked. NULL and errno == ENOMEM on failure. Cost: one to four
   system calls. */
BXR_INTERNAL void *bxr_memory_reserve(size_t size);

/* Purges [start, start + size), whose bounds are page boundaries of the system: returns its memory and keeps the
   address space. False when the system refuses (locked memory); then the range holds what it held or zeroes, otherwise
   zeroes. */
BXR_INTERNAL bool bxr_memory_purge(void *start, size_t size);

/* The size of the system's pages. Cost: a system call the first time. */
BXR_INTERNAL size_t bxr_memory_page_size(void);

/* bxr_memory_map returns `size` bytes of zeroes for the library itself; NULL on failure. bxr_memory_unmap undoes it,
   and also bxr_memory_reserve as far as the system can. */
BXR_INTERNAL void *bxr_memory_map(size_t size);
BXR_INTERNAL void bxr_memory_unmap(void *start, size_t size);

/* Gives the address space back that bxr_memory_reserve has ready. */
BXR_INTERNAL void bxr_memory_release(void);

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* Lets another thread run. */
BXR_INTERNAL void bxr_thread_yield(void);

/* A lock that is held for a short time; other threads yield meanwhile. */
static inline void bxr_thread_lock(bool *lock)
{
  for (bool held = false; !bxr_cas_acq_rel(lock, &held, true); held = false) bxr_thread_yield();
}
static inline void bxr_thread_unlock(bool *lock) { bxr_store_release(lock, false); }

/* Whether `p` is in the stack that the system gave this thread. The answer is BXR_THREAD_UNKNOWN where there is no way
   to ask, or where asking needs /proc or a file descriptor (the first thread's bounds) and they are not available now.
   Cost: a comparison; one to four system calls at first. */
typedef enum { BXR_THREAD_NO, BXR_THREAD_YES, BXR_THREAD_UNKNOWN } bxr_thread_answer;
BXR_INTERNAL bxr_thread_answer bxr_thread_stack_has(void const *p);

/* This thread's name for bxr_thread_await_progress; and whether it is the one that the process began with. */
BXR_INTERNAL long bxr_thread_id(void);
BXR_INTERNAL bool bxr_thread_is_first(void);

/* Whether the process still has a thread of that name, which may be a later one; true where it is not known. */
BXR_INTERNAL bool bxr_thread_is_there(long thread);

/* The number of threads of this process; 0 where it is not known. */
BXR_INTERNAL unsigned long bxr_thread_count(void);

/* Stores the names of the threads of this process to ids[0] .. ids[most - 1]. The result is how many they are; more
   than `most` if they are too many, or not known. */
BXR_INTERNAL unsigned bxr_thread_list(long *ids, unsigned most);

/* Waits until a thread of this process is past the instructions at which it was when the call began, at most a few tens
   of them. It is when it has used 0.1 ms of processor time since, or sleeps in the kernel, or does not exist any more,
   or has set *ended (atomic). Gives up after a second, or, where the system does not tell about threads, after 20 ms.
   Needs `ended` to be valid until it returns. */
BXR_INTERNAL void bxr_thread_await_progress(long thread, bool const *ended);

/* --- the object --------------------------------------------------------------------------------------------------- */

/* "The object" is the program or shared object that the library is part of, as the dynamic linker sees it.

   bxr_object_pin makes the object stay in the process until that ends, whoever unloads it, where the system can do
   that. Cost: some microseconds. */
BXR_INTERNAL void bxr_object_pin(void);

/* Calls f when the process exits: after C++ objects with static storage duration have ended their roots, in the program
   and, with glibc, in all shared objects. The object stays in the process until then. For two functions at most. */
BXR_INTERNAL void bxr_object_at_exit(void (*f)(void));

/* To be called when the object is about to be used: from then on bxr_object_is_unloading can tell. Leaves some bytes
   behind each time in an object that may be unloaded. */
BXR_INTERNAL void bxr_object_prepare(void);

/* For a destructor of the object: whether the object is being unloaded by a process that goes on. False where that is
   not known. */
BXR_INTERNAL bool bxr_object_is_unloading(void);

#endif
