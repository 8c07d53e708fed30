/* SPDX-License-Identifier: MIT */
/* A test in a child of its own, where nothing has begun yet. */
#ifndef TRY_CHILD_H
#define TRY_CHILD_H

#include "space.h"
#include "try.h"

#define M ((size_t)1 << 20)

/* `settings`: the variable OUTHEAP there. */
static inline void in_child(char const *settings, void (*body)(void))
{
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (settings != NULL) setenv("OUTHEAP", settings, 1);
    else unsetenv("OUTHEAP");
    body();
    oh_space_validate();
    _exit(0);
  }
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
}

#endif
