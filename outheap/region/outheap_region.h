/* SPDX-License-Identifier: MIT */
/* Regions, for C: which custom blocks of a program may be copied into a region. The module Outheap_region has the
   rest. */
#ifndef OUTHEAP_REGION_H
#define OUTHEAP_REGION_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct custom_operations;

/* From now on blocks with these operations are copied into regions, byte by byte, and found again by their identifier
   when an image is mapped. So they must hold nothing but plain data: no OCaml values, no pointers, nothing that a
   finaliser frees. Finalisers are not called for copies. `operations` stays. Any thread, with or without OCaml's lock.
   False: no memory. */
bool outheap_region_register_custom(struct custom_operations const *operations);

#ifdef __cplusplus
}
#endif
#endif
