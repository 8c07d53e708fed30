/* SPDX-License-Identifier: MIT */
/* Threads of the library's that are left. */
#ifndef SOAK_THREADS_H
#define SOAK_THREADS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Is none left, now? Whoever ends one waits until the system has forgotten it. */
static inline bool is_alone(void)
{
  bool alone = true;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *d; tasks != NULL && (d = readdir(tasks)) != NULL;) {
    char path[sizeof d->d_name + 32], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
    FILE *comm = fopen(path, "r");
    if (comm == NULL) continue;
    if (fgets(name, sizeof name, comm) != NULL && strncmp(name, "outheap-", 8) == 0) alone = false;
    fclose(comm);
  }
  if (tasks != NULL) closedir(tasks);
  if (!alone) fprintf(stderr, "a thread of the library's is left\n");
  return alone;
}

#endif
