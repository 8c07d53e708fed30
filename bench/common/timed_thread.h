/* SPDX-License-Identifier: MIT */
/* How long a thread without the runtime's lock takes for something, in seconds. */
#include <caml/alloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct { void (*work)(void); double seconds; } timed_work;

static void *timed_thread(void *work)
{
  timed_work *w = work;
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  w->work();
  clock_gettime(CLOCK_MONOTONIC, &end);
  w->seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
  return NULL;
}

static value seconds_of_thread(void (*work)(void))
{
  timed_work w = {work, 0};
  pthread_t thread;
  if (pthread_create(&thread, NULL, timed_thread, &w) != 0) abort();
  pthread_join(thread, NULL);
  return caml_copy_double(w.seconds);
}
