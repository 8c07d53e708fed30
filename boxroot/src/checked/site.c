/* SPDX-License-Identifier: MIT */
#include "site.h"

#if BOXROOT_DEBUG
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the public call that this thread is in ----------------------------------------------------------------------- */

static BXR_THREAD_LOCAL bxr_site_call current;
static BXR_THREAD_LOCAL bxr_site told; /* where the next call comes from */

void bxr_called_from(char const *file, int line)
{
  told.file = file;
  told.line = line;
}

static bxr_site_call begin(bxr_site_call call)
{
  bxr_site_call outer = current;
  current = call;
  return outer;
}

bxr_site_call bxr_site_enter(char const *function, void const *address)
{
  bxr_site site = { told.file, address, told.line };
  told = (bxr_site){ 0 };
  return begin((bxr_site_call){ site, function });
}

bxr_site_call bxr_site_enter_own(void) { return begin((bxr_site_call){ { .line = -1 }, "the library" }); }
void bxr_site_leave(bxr_site_call *outer) { current = *outer; }
bxr_site_call bxr_site_current(void) { return current; }
char const *bxr_site_function(void) { return current.function; }
char const *bxr_site_here(char text[BXR_SITE_TEXT]) { return bxr_site_text(current.site, text); }

/* --- sites in words ----------------------------------------------------------------------------------------------- */

#pragma weak dladdr /* in a library of its own on older systems, which programs need not link because of this one */

/* Says where a piece of code is: function (when the dynamic linker knows it), module, offset in the module as addr2line
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

void bxr_site_print(bxr_site_count *sites, size_t n, char const *what)
{
  qsort(sites, n, sizeof(bxr_site_count), by_site);
  size_t different = 0;
  for (size_t i = 0; i < n; i++)
    if (different > 0 && by_site(&sites[different - 1], &sites[i]) == 0)
      sites[different - 1].count += sites[i].count;
    else sites[different++] = sites[i];
  qsort(sites, different, sizeof(bxr_site_count), by_count);
  for (size_t i = 0; i < different; i++) {
    char text[BXR_SITE_TEXT];
    bxr_site_text(sites[i].site, text);
    fprintf(stderr, "boxroot:   %llu %s %s\n", (unsigned long long)sites[i].count, what, text);
  }
}
#endif
