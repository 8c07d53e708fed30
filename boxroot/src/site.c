/* SPDX-License-Identifier: MIT */
#include "site.h"

#if BOXROOT_DEBUG
#include <stdint.h>
#include <stdio.h>
#include <string.h>

char const *bxr_site_text(bxr_site s, char text[BXR_SITE_TEXT])
{
  if (s.file != NULL) snprintf(text, BXR_SITE_TEXT, "%s:%d", s.file, s.line);
  else if (s.address != NULL) bxr_os_describe_code((char const *)s.address - 1, text, BXR_SITE_TEXT); /* in the call, not behind it */
  else snprintf(text, BXR_SITE_TEXT, "an unknown place");
  return text;
}

int bxr_site_compare(bxr_site a, bxr_site b)
{
  if (a.file != NULL && b.file != NULL) {
    int files = a.file == b.file ? 0 : strcmp(a.file, b.file);
    return files != 0 ? files : (a.line > b.line) - (a.line < b.line);
  }
  if (a.file != NULL || b.file != NULL) return a.file != NULL ? -1 : 1;
  return ((uintptr_t)a.address > (uintptr_t)b.address) - ((uintptr_t)a.address < (uintptr_t)b.address);
}
#endif
