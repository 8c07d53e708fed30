/* SPDX-License-Identifier: MIT */
/* Errors as a line of text. Outheap_region.error_to_string says the same. */
#include "outheap_region.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct reason { char const *kind, *what, *advice; };

static struct reason const reasons[] = {
  { "closure", "a function", "; ~closures:true copies functions, but not into images" },
  { "object", "an object", "; ~closures:true copies objects, but not into images" },
  { "lazy", "a lazy value that is not forced", "; force it before" },
  { "abstract", "an abstract block of C code", "" },
  { "custom", "a custom block", ", of a type that was not registered" },
  { "continuation", "a continuation", "" },
  { "extension constructor", "the constructor of an exception or of an extensible type", "" },
  { "foreign pointer", "a pointer to memory outside the heap", "" },
};

static int refused(struct outheap_region_error const *e, char *text, size_t size)
{
  char const *kind = e->text == NULL ? "" : e->text, *what = kind, *advice = "", *named = e->identifier;
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    if (strcmp(kind, reasons[i].kind) == 0) {
      what = reasons[i].what;
      advice = reasons[i].advice;
    }
  bool nested = e->path[0] != 0, has_name = named[0] != 0;
  return snprintf(text, size, "cannot be copied: %s%s, %s%s%s%s%s", nested ? "at " : "the value itself",
                  e->path, what, has_name ? " \"" : "", named, has_name ? "\"" : "", advice);
}

static int in_use(struct outheap_region_error const *e, char *text, size_t size)
{
  static char const *const names[] = { "roots", "the heap", "other regions" };
  char from[64] = "";
  for (int i = 0; i < 3; i++)
    if (e->from >> i & 1) {
      strcat(from, from[0] == 0 ? ", from " : ", ");
      strcat(from, names[i]);
    }
  return snprintf(text, size, "in use: %zu %s%s", e->number, e->number == 1 ? "pointer" : "pointers", from);
}

size_t outheap_region_error_text(struct outheap_region_error const *e, char *text, size_t size)
{
  char const *file = e->file, *between = file[0] == 0 ? "" : ": ", *what = e->text == NULL ? "" : e->text;
  bool has_name = e->identifier[0] != 0;
  int n = 0;
  switch (e->kind) {
    case OUTHEAP_REGION_OK: n = snprintf(text, size, "no error"); break;
    case OUTHEAP_REGION_UNSUPPORTED: n = snprintf(text, size, "%s%s%s", file, between, what); break;
    case OUTHEAP_REGION_NO_MEMORY: n = snprintf(text, size, "no memory"); break;
    case OUTHEAP_REGION_TOO_MANY:
      n = snprintf(text, size, "too many regions (there may be 32,768), or no address space");
      break;
    case OUTHEAP_REGION_REFUSED: n = refused(e, text, size); break;
    case OUTHEAP_REGION_IN_USE: n = in_use(e, text, size); break;
    case OUTHEAP_REGION_GONE: n = snprintf(text, size, "the region was deleted or revoked before"); break;
    case OUTHEAP_REGION_SYSTEM:
      n = snprintf(text, size, "%s%s%s: %s", file, between, what, strerror((int)e->number));
      break;
    case OUTHEAP_REGION_DAMAGED: n = snprintf(text, size, "%s%sdamaged: %s", file, between, what); break;
    case OUTHEAP_REGION_OTHER_PROGRAM:
      n = snprintf(text, size, "%s%smade by another program: %s%s%s%s%s%s", file, between, what, has_name ? " \"" : "",
                   e->identifier, has_name ? "\"" : "", e->wanted[0] == 0 ? "" : ", wanted ", e->wanted);
      break;
    case OUTHEAP_REGION_OTHER_SCHEMA:
      n = snprintf(text, size, "%s%sholds schema \"%s\" version %" PRId64 ", wanted \"%s\" version %" PRId64, file,
                   between, e->identifier, (int64_t)e->number, e->wanted, e->wanted_version);
      break;
    case OUTHEAP_REGION_MISSING:
      n = snprintf(text, size, "%s%sneeds an image that is not mapped: the one with digest %s", file, between,
                   e->identifier);
  }
  return n < 0 ? 0 : (size_t)n;
}
