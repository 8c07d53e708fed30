/* SPDX-License-Identifier: MIT */
#include "site.h"

#if BOXROOT_DEBUG
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak dladdr /* in a library of its own on older systems, which programs need not link because of this one */
extern int backtrace(void **, int) __attribute__((weak)); /* not in every C library */

int bxr_site_calls(void **addresses, int most) { return backtrace == NULL ? 0 : backtrace(addresses, most); }

/* Where a piece of code is: function (when the dynamic linker knows it), module, offset in the module as addr2line
   wants it. */
static void describe_code(void const *p, char *text, size_t size)
{
  Dl_info info = { 0 };
  if (dladdr == NULL || dladdr(p, &info) == 0 || info.dli_fname == NULL) snprintf(text, size, "address %p", p);
  else if (info.dli_sname == NULL)
    snprintf(text, size, "%s(+0x%zx) [%p]", info.dli_fname, (size_t)((char const *)p - (char const *)info.dli_fbase),
             p);
  else
    snprintf(text, size, "%s in %s(+0x%zx) [%p]", info.dli_sname, info.dli_fname,
             (size_t)((char const *)p - (char const *)info.dli_fbase), p);
}

char const *bxr_site_text(bxr_site s, char text[BXR_SITE_TEXT])
{
  if (s.file != NULL) snprintf(text, BXR_SITE_TEXT, "%s:%d", s.file, s.line);
  else if (s.address != NULL) /* the call itself, not the instruction after it */
    describe_code((char const *)s.address - 1, text, BXR_SITE_TEXT);
  else snprintf(text, BXR_SITE_TEXT, "an unknown place");
  return text;
}

static int by_site(void const *first, void const *second)
{
  bxr_site a = ((bxr_site_count const *)first)->site, b = ((bxr_site_count const *)second)->site;
  if (a.file != NULL && b.file != NULL) {
    int files = a.file == b.file ? 0 : strcmp(a.file, b.file);
    return files != 0 ? files : (a.line > b.line) - (a.line < b.line);
  }
  if (a.file != NULL || b.file != NULL) return a.file != NULL ? -1 : 1;
  return ((uintptr_t)a.address > (uintptr_t)b.address) - ((uintptr_t)a.address < (uintptr_t)b.address);
}

static int by_count(void const *first, void const *second)
{
  uint64_t a = ((bxr_site_count const *)first)->count, b = ((bxr_site_count const *)second)->count;
  return a != b ? (a < b) - (a > b) : by_site(first, second);
}

void bxr_site_print_counts(bxr_site_count *places, size_t n, char const *what)
{
  qsort(places, n, sizeof(bxr_site_count), by_site);
  size_t different = 0;
  for (size_t i = 0; i < n; i++)
    if (different > 0 && by_site(&places[different - 1], &places[i]) == 0)
      places[different - 1].count += places[i].count;
    else places[different++] = places[i];
  qsort(places, different, sizeof(bxr_site_count), by_count);
  for (size_t i = 0; i < different; i++) {
    char text[BXR_SITE_TEXT];
    bxr_site_text(places[i].site, text);
    fprintf(stderr, "boxroot:   %llu %s %s\n", (unsigned long long)places[i].count, what, text);
  }
}
#endif
