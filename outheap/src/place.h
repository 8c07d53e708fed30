/* SPDX-License-Identifier: MIT */
/* Finds places in the address space, and reserves them: first in a space's part of the zone, then in the parts of other
   spaces and above them, then where the system likes. Nothing is claimed in the table here, but places are only taken
   if all their chunks can be claimed, as far as that is known. No locks: reserve.c has one. */
#ifndef OH_PLACE_H
#define OH_PLACE_H

#include "config.h"
#include <stdbool.h>

/* One for each space, and one for the stock. */
struct oh_place {
  uintptr_t begin, end; /* its part of the zone */
  uintptr_t next;       /* no chunk of it below this address can be had any more */
  bool foreign;         /* may take chunks that are foreign already */
  size_t reservations;  /* counters: attempts, chunks that were left alone since they were tainted */
  size_t tainted;
};

/* `bytes`, beginning at a chunk, with records in page.h. 0: no address space, or no memory. Cost: a system call, and at
   most some hundred where something else has taken the zone. */
uintptr_t oh_place_find(struct oh_place *, size_t bytes);

/* `bytes` in the zone, a multiple of chunks, where nothing is mapped and nothing claimed; they are not reserved. 0: the
   zone cannot be had, has smaller parts, or there is no such place. */
uintptr_t oh_place_vacant(struct oh_place *, size_t bytes);

/* Does this lie in the space's part of the zone, or is there no zone? */
bool oh_place_is_home(struct oh_place const *, uintptr_t at, size_t bytes);

/* [at, at + bytes), with records in page.h. `at` may be inside a chunk that is the space's already. False: errno =
   ENOMEM if there is no address space or memory; otherwise something is there. */
bool oh_place_at(struct oh_place *, uintptr_t at, size_t bytes);

#endif
