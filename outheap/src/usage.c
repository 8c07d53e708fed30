/* SPDX-License-Identifier: MIT */
#include "usage.h"
#include "page.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `Rss:    1234 kB` */
static bool has_kilobytes(char const *line, char const *name, size_t *bytes)
{
  size_t n = strlen(name);
  if (strncmp(line, name, n) != 0) return false;
  *bytes = (size_t)strtoull(line + n, NULL, 10) << 10;
  return true;
}

/* A line of smaps: the beginning of a mapping (`7f00-7f80 rw-p …`), or a property of the mapping before. */
static void count_line(char const *line, struct oh_usage *all, struct oh_usage **here)
{
  size_t bytes;
  if (has_kilobytes(line, "Rss:", &bytes)) (*here)->resident += bytes;
  else if (has_kilobytes(line, "AnonHugePages:", &bytes)) (*here)->huge += bytes;
  else if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
    uintptr_t begin = (uintptr_t)strtoull(line, NULL, 16);
    unsigned owner = begin >> OH_ADDRESS_BITS != 0 ? 0 : oh_page_bits(begin) & OH_PAGE_OWNER;
    *here = &all[owner == 0 ? OH_SPACES : (int)owner - 1];
  }
}

bool oh_usage_get(struct oh_usage result[OH_SPACES + 1])
{
  memset(result, 0, (OH_SPACES + 1) * sizeof *result);
  int error = errno, file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    errno = error;
    return false;
  }
  char text[4096], line[128];
  struct oh_usage *here = &result[OH_SPACES];
  size_t length = 0;
  ssize_t n;
  while ((n = read(file, text, sizeof text)) > 0 || (n < 0 && errno == EINTR))
    for (ssize_t i = 0; i < n; i++)
      if (text[i] == '\n') {
        line[length] = 0;
        count_line(line, result, &here);
        length = 0;
      }
      else if (length < sizeof line - 1) line[length++] = text[i]; /* names of files are cut */
  close(file);
  errno = error;
  return n == 0;
}
