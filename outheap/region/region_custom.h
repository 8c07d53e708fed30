/* SPDX-License-Identifier: MIT */
/* Custom blocks that may lie in a region: those of int32, int64, nativeint and bigarrays, and what a program
   registers. */
#ifndef OUTHEAP_REGION_CUSTOM_H
#define OUTHEAP_REGION_CUSTOM_H

#include "region_config.h"
#include <caml/custom.h>

enum outheap_region_custom_kind {
  OUTHEAP_REGION_CUSTOM_NONE, OUTHEAP_REGION_CUSTOM_PLAIN, OUTHEAP_REGION_CUSTOM_BIGARRAY
};

/* May blocks of this type be copied, and how? */
enum outheap_region_custom_kind outheap_region_custom_kind(struct custom_operations const *);

/* The operations of that identifier in this program; NULL: unknown. The caller holds OCaml's lock. */
struct custom_operations const *outheap_region_custom_find(char const *identifier);

#endif
