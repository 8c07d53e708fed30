/* SPDX-License-Identifier: MIT */
#include "log.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print(char const *format, va_list args)
{
  char text[512];
  int n = snprintf(text, sizeof text, "outheap: ");
  int m = vsnprintf(text + n, sizeof text - n - 1, format, args);
  n += m < 0 ? 0 : m < (int)sizeof text - n - 1 ? m : (int)sizeof text - n - 2;
  text[n++] = '\n';
  int error = errno;
  for (ssize_t done = 0, k; done < n && (k = write(STDERR_FILENO, text + done, n - done)) > 0;) done += k;
  errno = error;
}

void oh_log(char const *format, ...)
{
  va_list args;
  va_start(args, format);
  print(format, args);
  va_end(args);
}

void oh_log_abort(char const *format, ...)
{
  va_list args;
  va_start(args, format);
  print(format, args);
  va_end(args);
  abort();
}
