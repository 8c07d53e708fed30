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

/* What `body` prints to standard error in a child with these settings. */
static inline char const *try_said(char const *settings, void (*body)(void))
{
  static char text[4096];
  size_t length = 0;
  int out[2], saved = dup(2);
  EXPECT(pipe(out) == 0, "pipe");
  dup2(out[1], 2);
  close(out[1]);
  in_child(settings, body);
  dup2(saved, 2);
  close(saved);
  for (ssize_t n; (n = read(out[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)n;
  close(out[0]);
  text[length] = 0;
  return text;
}

static inline unsigned try_times(char const *text, char const *word)
{
  unsigned n = 0;
  for (char const *p = text; (p = strstr(p, word)) != NULL; p++) n++;
  return n;
}

#endif
