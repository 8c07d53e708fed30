/* SPDX-License-Identifier: MIT */
#include "usage.h"
#include "proc.h"
#include <stdlib.h>
#include <string.h>

/* `Rss:    1234 kB` */
static bool has_kilobytes(char const *line, char const *name, size_t *bytes)
{
  size_t n = strlen(name);
  if (strncmp(line, name, n) != 0) return false;
  *bytes = (size_t)strtoull(line + n, NULL, 10) << 10;
  return true;
}

/* A line of smaps: the beginning of a mapping (`7f00-7f80 rw-p …`), or a property of the mapping before. */
struct count { struct oh_usage *all, *here; };
static void count_line(char *line, void *data)
{
  struct count *c = data;
  size_t bytes;
  if (has_kilobytes(line, "Rss:", &bytes)) c->here->resident += bytes;
  else if (has_kilobytes(line, "AnonHugePages:", &bytes)) c->here->huge += bytes;
  else if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
    uintptr_t begin = (uintptr_t)strtoull(line, NULL, 16);
    unsigned owner = OH_IS_BEYOND(begin) ? 0 : oh_page_bits(begin) & OH_PAGE_OWNER;
    c->here = &c->all[owner == 0 ? OH_SPACES : (int)owner - 1];
  }
}

bool oh_usage_get(struct oh_usage result[OH_SPACES + 1])
{
  memset(result, 0, (OH_SPACES + 1) * sizeof *result);
  return oh_proc_mappings(count_line, &(struct count){ result, &result[OH_SPACES] });
}
