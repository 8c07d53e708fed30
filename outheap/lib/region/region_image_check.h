/* SPDX-License-Identifier: MIT */
/* Checks every block of an image that was just mapped, wherever it came from: afterwards no operation on its values can
   leave it. Addresses in it are still those that it was written with. */
#ifndef OUTHEAP_REGION_IMAGE_CHECK_H
#define OUTHEAP_REGION_IMAGE_CHECK_H

#include "region_config.h"

struct outheap_region_image_check {
  char const *at; /* where the image is mapped */
  uintptr_t base; /* what its addresses count from */
  size_t used, start;
  uint64_t const *bits; /* a bit for each word from `start` on: is it an address? */
  uintptr_t root;
  size_t table, customs;   /* the table of custom operations, and the entries in use */
  size_t proxy;            /* that of bigarrays */
  char const *names;       /* their identifiers, `name` bytes each */
  size_t name;
  uintptr_t *need_base;    /* triples: base, size, where it is mapped */
  size_t need_count;
};

/* NULL, or what is wrong; without memory, the second. */
extern char const outheap_region_image_check_no_memory[];
char const *outheap_region_image_check(struct outheap_region_image_check const *);

#endif
