/* SPDX-License-Identifier: MIT */
#include "site.h"

#if BOXROOT_DEBUG
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char const *bxr_site_text(bxr_site s, char text[BXR_SITE_TEXT])
{
  if (s.file != NULL) snprintf(text, BXR_SITE_TEXT, "%s:%d", s.file, s.line);
  else if (s.address != NULL) /* in the call, not behind it */
    bxr_os_describe_code((char const *)s.address - 1, text, BXR_SITE_TEXT);
  else snprintf(text, BXR_SITE_TEXT, "an unknown place");
  return text;
}

static int by_site(void const *first, void const *second)
{
  bxr_site a = ((bxr_place const *)first)->site, b = ((bxr_place const *)second)->site;
  if (a.file != NULL && b.file != NULL) {
    int files = a.file == b.file ? 0 : strcmp(a.file, b.file);
    return files != 0 ? files : (a.line > b.line) - (a.line < b.line);
  }
  if (a.file != NULL || b.file != NULL) return a.file != NULL ? -1 : 1;
  return ((uintptr_t)a.address > (uintptr_t)b.address) - ((uintptr_t)a.address < (uintptr_t)b.address);
}

static int by_count(void const *first, void const *second)
{
  uint64_t a = ((bxr_place const *)first)->count, b = ((bxr_place const *)second)->count;
  return a != b ? (a < b) - (a > b) : by_site(first, second);
}

void bxr_places_print(bxr_place *places, size_t n, char const *what)
{
  qsort(places, n, sizeof(bxr_place), by_site);
  size_t different = 0;
  for (size_t i = 0; i < n; i++)
    if (different > 0 && by_site(&places[different - 1], &places[i]) == 0)
      places[different - 1].count += places[i].count;
    else places[different++] = places[i];
  qsort(places, different, sizeof(bxr_place), by_count);
  for (size_t i = 0; i < different; i++) {
    char text[BXR_SITE_TEXT];
    bxr_site_text(places[i].site, text);
    fprintf(stderr, "boxroot:   %llu %s %s\n", (unsigned long long)places[i].count, what, text);
  }
}
#endif
