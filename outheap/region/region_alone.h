/* SPDX-License-Identifier: MIT */
/* Running a function while no other thread runs OCaml code or touches OCaml's heap. */
#ifndef OUTHEAP_REGION_ALONE_H
#define OUTHEAP_REGION_ALONE_H

#include "region_config.h"

/* Calls f(data), maybe on another domain's thread, while all domains are stopped. The caller holds OCaml's lock. Before
   f is called there may be a collection; during it, none. f must not call OCaml, allocate in its heap, or take a lock
   that a stopped thread may hold. Result: nanoseconds for which the others waited. False: no memory, not called. */
bool outheap_region_alone(void (*f)(void *), void *data, uint64_t *waited);

#endif
