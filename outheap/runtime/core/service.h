/* SPDX-License-Identifier: MIT */
/* Background threads of the library: the helper, the reclaim thread, statistics. Each is described by a static struct
   oh_service. This file starts, ends and forgets them; what they do is their module's.

   The thread   is none of OCaml's and belongs to no domain. All signals are blocked in it: they are the program's. Its
                stack has 1 MiB beside the thread-local variables of what is loaded, since the program's hooks and
                samplers run on it, too. It has the service's name, which ps shows.
   fork         leaves the child without the thread. The module calls oh_service_forget in the child, and may start the
                thread again.
   clone        as a bare system call leaves the child without the thread, too, and tells nobody: it sees the service
                and all locks as they were. There oh_service_end takes no lock, and returns; in a child that has its
                parent's number, in another namespace, it asks, and does not wait for a thread that is missing.
   OH_SBRK      has no threads: libc's sbrk is for one. */
#ifndef OH_SERVICE_H
#define OH_SERVICE_H

#include "base.h"
#include <pthread.h>
#include <stdbool.h>

struct oh_service {
  char const *name; /* at most 15 bytes */
  void (*run)(void);
  /* service.c's own. */
  pthread_mutex_t ending; /* held by who ends it; before any lock of the module's */
  pthread_t thread;
  bool runs;
  long number; /* of the thread, which writes it; 0: not known */
  long owner;  /* the process that has started it; 0: none. Atomic */
};
#define OH_SERVICE(its_name, function) { .name = (its_name), .run = (function), .ending = PTHREAD_MUTEX_INITIALIZER }

/* Starts the thread. False: it cannot be had. There is none, and nobody else starts it: the module has a lock, or a
   single thread. */
bool oh_service_start(struct oh_service *);

/* Calls `ask`, which makes the thread's function return if there is one, and sees to it that no thread is started any
   more; then waits for the thread's end. Of several threads that end it one waits for that, and the others for this
   one. The system has forgotten the thread by then, which is a moment after its end as the C library knows it: what
   wants a process with a single thread is not refused. Any thread but this one, without locks of the module's. */
void oh_service_end(struct oh_service *, void (*ask)(void));

/* In the child of a fork. Result: had the parent such a thread? */
bool oh_service_forget(struct oh_service *);

#endif
