/* SPDX-License-Identifier: MIT */
#include "fault.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bxr_fault(char const *format, ...)
{
  va_list args;
  va_start(args, format);
  fputs("boxroot: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}
