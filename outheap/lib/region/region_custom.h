/* SPDX-License-Identifier: MIT */
/* Custom blocks that may lie in a region: those of int32, int64, nativeint and bigarrays, and what a program
   registers. */
#ifndef OUTHEAP_REGION_CUSTOM_H
#define OUTHEAP_REGION_CUSTOM_H

#include "region_config.h"
#include <caml/bigarray.h>
#include <caml/custom.h>

enum outheap_region_custom_kind {
  OUTHEAP_REGION_CUSTOM_NONE, OUTHEAP_REGION_CUSTOM_PLAIN, OUTHEAP_REGION_CUSTOM_BIGARRAY
};

/* May blocks of this type be copied, and how? */
enum outheap_region_custom_kind outheap_region_custom_kind(struct custom_operations const *);

/* The operations of that identifier in this program; NULL: unknown. The caller holds OCaml's lock. */
struct custom_operations const *outheap_region_custom_find(char const *identifier);

/* A bigarray in a region counts as managed, with a proxy that all of them share. The runtime counts there the bigarrays
   in the heap that are parts of them (sub, slice, reshape): these have an address in the region, and maybe its table of
   functions, which the collector does not see. The region holds one count itself, so nobody frees anything. */
static inline void outheap_region_custom_start(struct caml_ba_proxy *p)
{
  memset(p, 0, sizeof *p);
  __atomic_store_n((uintnat *)&p->refcount, 1, __ATOMIC_RELAXED);
}
/* Are there such parts? NULL: no. */
static inline bool outheap_region_custom_has_parts(struct caml_ba_proxy const *p)
{
  return p != NULL && __atomic_load_n((uintnat const *)&p->refcount, __ATOMIC_ACQUIRE) != 1;
}

#endif
