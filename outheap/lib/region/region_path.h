/* SPDX-License-Identifier: MIT */
#ifndef OUTHEAP_REGION_PATH_H
#define OUTHEAP_REGION_PATH_H

#include "region_config.h"

/* The way from the root to a field, as text: `.2.0[17]` is field 17 of field 0 of field 2 of the root. Fields of blocks
   with more than 16 fields have brackets. A long way is shortened in the middle. The field is number `field` of the
   block whose header is at base + at; blocks lie from base + start, in the order in which the copy (region_copy.h)
   came to them, `count` of them at most. Without memory the text is empty. */
void outheap_region_path(char const *base, size_t start, size_t at, mlsize_t field, size_t count, char *text,
                         size_t size);

#endif
