/* SPDX-License-Identifier: MIT */
/* What can go wrong, in the order of the constructors of Outheap_region.error (outheap_region_stubs.c makes them). */
#ifndef OUTHEAP_REGION_ERROR_H
#define OUTHEAP_REGION_ERROR_H

#include "region_config.h"

enum outheap_region_error_kind {
  OUTHEAP_REGION_OK = -1,
  OUTHEAP_REGION_UNSUPPORTED, /* text */
  OUTHEAP_REGION_NO_MEMORY,
  OUTHEAP_REGION_TOO_MANY,
  OUTHEAP_REGION_REFUSED, /* text: the kind; identifier; path */
  OUTHEAP_REGION_IN_USE,  /* number: pointers; from: who met them, as in outheap_marker_by; 4: other regions */
  OUTHEAP_REGION_GONE,
  OUTHEAP_REGION_SYSTEM, /* text: the call; number: errno */
  OUTHEAP_REGION_DAMAGED, /* text: what is wrong */
  OUTHEAP_REGION_OTHER_PROGRAM, /* text: what differs */
  OUTHEAP_REGION_OTHER_SCHEMA,  /* identifier: the name found; number: the version found */
  OUTHEAP_REGION_MISSING        /* identifier: the digest of the image, in hexadecimal */
};

struct outheap_region_error {
  enum outheap_region_error_kind kind;
  char const *text; /* static */
  size_t number;
  unsigned from;
  char identifier[144], path[256];
};

/* All return false. */
static inline bool outheap_region_error_is(struct outheap_region_error *e, enum outheap_region_error_kind kind,
                                           char const *text)
{
  e->kind = kind;
  e->text = text;
  return false;
}

static inline bool outheap_region_error_system(struct outheap_region_error *e, char const *call, int number)
{
  outheap_region_error_is(e, OUTHEAP_REGION_SYSTEM, call);
  e->number = (size_t)number;
  return false;
}

static inline void outheap_region_error_name(struct outheap_region_error *e, char const *name)
{
  size_t n = 0;
  for (; n < sizeof e->identifier - 1 && name[n] != 0; n++) e->identifier[n] = name[n];
  e->identifier[n] = 0;
}

#endif
