/* SPDX-License-Identifier: MIT */
/* Resident memory and huge pages of each space, as the system accounts for them. */
#ifndef OH_USAGE_H
#define OH_USAGE_H

#include "page.h"
#include <stdbool.h>

struct oh_usage { size_t resident, huge; }; /* bytes; `huge`: of these, in huge pages */

/* One for each space, and at OH_SPACES one for the rest of the process. A mapping counts for the space that it begins
   in; pieces of different spaces make one mapping only if they touch, which those in the zone do not. Takes no lock and
   allocates nothing. False: the system does not tell. Cost: the system looks at all page tables of the process, some
   milliseconds for each gigabyte in small pages. */
bool oh_usage_get(struct oh_usage result[OH_SPACES + 1]);

#endif
