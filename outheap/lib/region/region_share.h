/* SPDX-License-Identifier: MIT */
/* Maximal sharing: equal blocks of a copy become one, bottom up. Two blocks are equal if their sizes, tags and fields
   are, where fields that point to equal blocks are equal. Cycles are kept; what differs only in the way round a cycle
   is not found to be equal. Closures, objects, and bigarrays with their data stay as they are. */
#ifndef OUTHEAP_REGION_SHARE_H
#define OUTHEAP_REGION_SHARE_H

#include "region_copy.h"

/* Changes a finished copy (region_copy.h), which gets smaller. Its blocks may also be merged into those of `others`:
   sequences of blocks from word[2i] to word[2i + 1], which lie where c->stay says; NULL: none. Returns false if there
   is no memory; then the copy must be dropped. */
bool outheap_region_share(struct outheap_region_copy *c, struct outheap_region_vector const *others);

#endif
