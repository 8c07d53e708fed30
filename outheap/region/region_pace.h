/* SPDX-License-Identifier: MIT */
/* What lies outside the heap makes the collector's cycles come sooner. */
#ifndef OUTHEAP_REGION_PACE_H
#define OUTHEAP_REGION_PACE_H

#include "region_config.h"

/* So much was made of what there may be `most` of for one cycle: a whole cycle is run meanwhile. Results of several
   calls add up; one counts as a whole cycle at most. The caller holds OCaml's lock. Never runs the collector. */
void outheap_region_pace(size_t made, size_t most);

#endif
