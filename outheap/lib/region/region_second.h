/* SPDX-License-Identifier: MIT */
/* A second process that reads the memory of this one as it was at a moment, while this one goes on. It is made as by
   fork, but the program does not notice it: it has no signal for its end and is not found by waitpid(-1, …); handlers
   of pthread_atfork are not called; it shares the table of files, so that what the program closes is closed; it blocks
   all signals, leaves no core file, is the first to be killed when memory runs out, and ends soon after the program. */
#ifndef OUTHEAP_REGION_SECOND_H
#define OUTHEAP_REGION_SECOND_H

#include "region_config.h"
#include <sys/types.h>

/* `shared`: a page that both processes see, from `start` to `wait`; all zeroes in the beginning. */
struct outheap_region_second { pid_t process, first; void *shared; };
#define OUTHEAP_REGION_SECOND_SHARED 4096 /* bytes */

/* Is it worth while? False: this process has one thread only, which would wait anyway; or a sanitizer cannot do it.
   Cost: a system call. */
bool outheap_region_second_helps(void);

/* Runs f(data) in a second process. There, only this thread exists: f may make system calls, but must not call OCaml or
   take any lock. What it is to leave behind must be in `shared` or in a shared mapping. In this process: true at once.
   False: that is not possible now (no memory, a limit on processes, a filter of system calls). Any thread; for the
   memory to be that of a moment, all others are stopped. Cost: some 30 ms for each GiB that the process has in pages
   of 4 KiB, little where it has huge ones. */
bool outheap_region_second_start(struct outheap_region_second *, void (*f)(void *), void *data);

/* In the second process: has the first one ended? */
bool outheap_region_second_is_left(struct outheap_region_second const *);

/* Waits for its end. True: f returned. Once after each `start`; without OCaml's lock. `shared` stays until `end`. */
bool outheap_region_second_wait(struct outheap_region_second *);
void outheap_region_second_end(struct outheap_region_second *);

#endif
