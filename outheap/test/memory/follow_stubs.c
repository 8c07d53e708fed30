/* SPDX-License-Identifier: MIT */
/* A thread that OCaml does not know, and that forks. */
#include <caml/mlvalues.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int left;

static void *fork_all(void *unused)
{
  for (; left > 0; left--) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) perror("a fork failed"), _exit(1);
    usleep(200);
  }
  return unused;
}

value follow_fork_beside(value times)
{
  pthread_t thread;
  left = (int)Long_val(times);
  if (pthread_create(&thread, NULL, fork_all, NULL) != 0) perror("no thread"), _exit(1);
  pthread_detach(thread);
  return Val_unit;
}

value follow_forks_left(value unit) { return (void)unit, Val_long(left); }
