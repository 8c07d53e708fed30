/* SPDX-License-Identifier: MIT */
#include "log.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void oh_log_write(int descriptor, char const *text, size_t length)
{
  int error = errno;
  for (size_t done = 0; done < length;) {
    ssize_t k = write(descriptor, text + done, length - done);
    if (k <= 0 && errno != EINTR) break;
    if (k > 0) done += (size_t)k;
  }
  errno = error;
}

static void print(char const *format, va_list args)
{
  char text[512];
  int n = snprintf(text, sizeof text, "outheap: ");
  int m = vsnprintf(text + n, sizeof text - n - 1, format, args);
  n += m < 0 ? 0 : m < (int)sizeof text - n - 1 ? m : (int)sizeof text - n - 2;
  text[n++] = '\n';
  oh_log_write(STDERR_FILENO, text, (size_t)n);
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
