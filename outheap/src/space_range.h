/* SPDX-License-Identifier: MIT */
/* Ranges: addresses of a space of which nothing is reserved before it is committed. For minor heaps, since OCaml wants
   one range for the largest number of domains, of which most never exist: with s=32M a range of 32 GB.

   Invariants: ranges are disjoint, and their chunks are claimed for the space; what is reserved of a range is in pieces
   of the space, in use, whether the range is taken or not.

   The caller holds the lock of the space. */
#ifndef OH_SPACE_RANGE_H
#define OH_SPACE_RANGE_H

#include "space_state.h"

/* Takes a range of `bytes`, a multiple of OH_PAGE: one that was given back and is large enough, or a new one. 0: there
   is no zone, no place in it, or no memory for the record. */
uintptr_t oh_space_range_take(struct oh_space_state *, size_t bytes);

/* Gives it back. False if no taken range begins there. What was reserved stays so, for the next one. */
bool oh_space_range_give(struct oh_space_state *, uintptr_t base);

/* Is [from, to) in a taken range? */
bool oh_space_range_holds(struct oh_space_state const *, uintptr_t from, uintptr_t to);

/* Reserves what is not reserved yet of [from, to), cut at large pages, if it is in a taken range. False: errno =
   ENOMEM; a part may have been reserved. */
bool oh_space_range_reserve(struct oh_space_state *, uintptr_t from, uintptr_t to);

#endif
