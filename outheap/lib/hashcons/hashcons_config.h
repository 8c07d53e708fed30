/* SPDX-License-Identifier: MIT */
/* What the files here share. A *cell* is a piece of memory off the heap with one hash-consed value and all that belongs
   to it alone, as a row of blocks:

     the record { hkey; tag; node }    the node, if it is a block    blocks that were copied along    0, if there is
     room

   All headers are black; the first one is OUTHEAP_HASHCONS_HEADER, which no free cell begins with. Fields are
   immediates, or lead to a block of the same cell, to another cell, or to static data. */
#ifndef OUTHEAP_HASHCONS_CONFIG_H
#define OUTHEAP_HASHCONS_CONFIG_H

#include <outheap_marker.h>
#include "region_addresses.h"

/* The stock runtime has none of these: then nothing here is called but outheap_hashcons_ml_start. */
#pragma weak outheap_marker_can_tell
#pragma weak outheap_marker_claim_cells
#pragma weak outheap_marker_use_map
#pragma weak outheap_marker_on_cycle

typedef uint64_t outheap_hashcons_cell; /* its first word */

#define OUTHEAP_HASHCONS_WORD sizeof(value)
#define OUTHEAP_HASHCONS_CHUNK OUTHEAP_REGION_CHUNK
#define OUTHEAP_HASHCONS_HEADER ((uint64_t)3 << 10 | OUTHEAP_REGION_BLACK)
enum { OUTHEAP_HASHCONS_HKEY = 1, OUTHEAP_HASHCONS_TAG = 2, OUTHEAP_HASHCONS_NODE = 3, OUTHEAP_HASHCONS_REST = 4 };

/* The value of a cell. */
static inline value outheap_hashcons_config_value(outheap_hashcons_cell *c) { return (value)(c + 1); }

#endif
