/* SPDX-License-Identifier: MIT */
/* Filling in what can go wrong (outheap_region.h). All of these return false, but for the name. */
#ifndef OUTHEAP_REGION_ERROR_H
#define OUTHEAP_REGION_ERROR_H

#include "region_config.h"
#include "outheap_region.h"
#include <errno.h>

static inline bool outheap_region_error_is(struct outheap_region_error *e, enum outheap_region_error_kind kind,
                                           char const *text)
{
  e->kind = kind;
  e->text = text;
  return false;
}

static inline bool outheap_region_error_system(struct outheap_region_error *e, char const *call, int number)
{
  if (number == ENOMEM) return outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
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
