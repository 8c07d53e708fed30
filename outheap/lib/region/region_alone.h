/* SPDX-License-Identifier: MIT */
/* Running a function while no other thread runs OCaml code or touches OCaml's heap. */
#ifndef OUTHEAP_REGION_ALONE_H
#define OUTHEAP_REGION_ALONE_H

#include "region_config.h"

/* While all domains are stopped: one of them calls f(data), maybe not the caller's, and then each of them calls
   each(data), unless that is NULL, on a thread of its own. The caller holds OCaml's lock. Before that there may be a
   collection; during it, none. The functions must not call OCaml, allocate in its heap, or take a lock that a stopped
   thread may hold. Result: nanoseconds for which the others waited for f. False: no memory, nothing was called. */
bool outheap_region_alone(void (*f)(void *), void (*each)(void *), void *data, uint64_t *waited);

#endif
