/* SPDX-License-Identifier: MIT */
#include "base.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- messages ----------------------------------------------------------------------------------------------------- */

int oh_log_write(int descriptor, char const *text, size_t length)
{
  int error = errno, why = 0;
  for (size_t done = 0; done < length && why == 0;) {
    ssize_t k = write(descriptor, text + done, length - done);
    if (k > 0) done += (size_t)k;
    else if (k == 0) why = EIO;
    else if (errno != EINTR) why = errno;
  }
  errno = error;
  return why;
}

static void print(char const *format, va_list args)
{
  char text[640];
  int n = snprintf(text, sizeof text, "outheap: ");
  int m = vsnprintf(text + n, sizeof text - n - 1, format, args);
  n += m < 0 ? 0 : m < (int)sizeof text - n - 1 ? m : (int)sizeof text - n - 2;
  text[n++] = '\n';
  (void)oh_log_write(STDERR_FILENO, text, (size_t)n);
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

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static char const *const messages[OH_NOTICES] = {
  [OH_NOTICE_ZONE] = ("%zu bytes of the heap lie outside of its part of the address space, where foreign pointers may "
                      "lead: something else is there, or a limit (ulimit -v) is reached"),
  [OH_NOTICE_MEMORY] = "the system refused %zu bytes: a limit (ulimit, cgroup, vm.overcommit_memory), or no memory",
  [OH_NOTICE_HUGE] = "no huge pages for %zu bytes: the system refused the advice, or its mode is `never`",
  [OH_NOTICE_HUGETLB] = ("%zu bytes are in ordinary pages: the pool of huge pages (vm.nr_hugepages, a control group) "
                         "has too few of 2 MB, or the kernel is older than Linux 5.16"),
};
static size_t counts[OH_NOTICES];
static unsigned printed;

void oh_notice(enum oh_notice kind, size_t bytes)
{
  if (oh_fetch_add_relaxed(&counts[kind], 1) == 0 && (oh_load_relaxed(&printed) >> kind & 1))
    oh_log(messages[kind], bytes);
}

void oh_notice_show(unsigned kinds) { oh_store_relaxed(&printed, kinds); }
size_t oh_notice_count(enum oh_notice kind) { return oh_load_relaxed(&counts[kind]); }
