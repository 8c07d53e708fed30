/* SPDX-License-Identifier: MIT */
/* The fine table: ranges of addresses inside chunks that are not the heap's, with what they hold. Static data of OCaml programs and of
   plugins, atoms, declared values, and OCaml 4.14's code. Sorted; ranges of the same contents that touch, or nearly (padding between the data of two units), are joined.
   The marker never looks here.

   For values, a range is one of *pointers to blocks*: it begins and ends a word behind the memory that holds the blocks with their headers.

   Readers take no lock and may run beside writers. */
#ifndef OH_RANGES_H
#define OH_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oh_contents { OH_HOLDS_VALUES = 1, OH_HOLDS_CODE = 2 };

/* Adds [begin, end). `exclusive`: refuse an overlap, and keep its ends exact; otherwise the union is kept, and gaps of up to 64 bytes between ranges that were
   added like this are closed. An overlap with other contents is refused. 0, EINVAL, ENOMEM. Marks the chunks (oh_mix). */
int oh_ranges_add(uintptr_t begin, uintptr_t end, enum oh_contents, bool exclusive);

/* Removes [begin, end). `exact`: it must be covered by what was added as `exclusive`. 0, EINVAL, ENOMEM. */
int oh_ranges_remove(uintptr_t begin, uintptr_t end, enum oh_contents, bool exact);

/* The contents at an address, or 0. Lock-free. */
unsigned oh_ranges_at(uintptr_t address);

size_t oh_ranges_count(void);
void oh_ranges_validate(void);

#endif
