/* SPDX-License-Identifier: MIT */
/* Maximal sharing: equal blocks of a copy become one, bottom up. Two blocks are equal if their sizes, tags and fields
   are, where fields that point to equal blocks are equal. Cycles are kept; what differs only in the way round a cycle
   is not found to be equal. Closures, objects, bigarrays and what they hold stay as they are. */
#ifndef OUTHEAP_REGION_SHARE_H
#define OUTHEAP_REGION_SHARE_H

#include "region_copy.h"

/* Changes a finished copy (region_copy.h), which gets smaller. Blocks of the pieces `others`, rows of blocks from
   word[2i] to word[2i + 1] that lie where c->stay says, are shared as well. False: no memory; the copy is to be
   dropped then. */
bool outheap_region_share(struct outheap_region_copy *c, struct outheap_region_vector const *others);

#endif
