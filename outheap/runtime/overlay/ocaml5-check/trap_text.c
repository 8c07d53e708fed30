/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap_text.h"
#include "base.h"
#include "settings.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static char text[1 << 16];
static size_t length;

void oh_trap_text_put(char const *format, ...)
{
  va_list arguments;
  size_t room = sizeof text - length;
  va_start(arguments, format);
  int n = vsnprintf(text + length, room, format, arguments);
  va_end(arguments);
  if (n > 0) length += (size_t)n < room ? (size_t)n : room - 1;
}

void oh_trap_text_flush(void)
{
  char const *name = oh_settings.check.report;
  int file = *name == 0 ? -1 : open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  bool written = file >= 0 && oh_log_write(file, text, length) == 0;
  if (!written) (void)oh_log_write(STDERR_FILENO, text, length);
  if (file >= 0) close(file);
  length = 0;
}
