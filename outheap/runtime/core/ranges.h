/* SPDX-License-Identifier: MIT */
/* Ranges of addresses inside chunks that are not the heap's, with what they hold: static data of OCaml programs and of
   plugins, atoms, declared values, code. They are sorted. Ranges with the same contents that touch, or nearly touch
   (there is padding between the data of two units), are joined. The marker never looks here.

   For values, a range is one of *pointers to blocks*: it begins and ends a word behind the memory that holds the blocks
   with their headers.

   Readers take no lock and may run concurrently with writers. */
#ifndef OH_RANGES_H
#define OH_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oh_ranges_contents { OH_RANGES_VALUES = 1, OH_RANGES_CODE = 2 };

/* Adds [begin, end), and makes its chunks mixed ones (oh_table_set_mixed). `exclusive`: an overlap is refused, and the
   ends are kept exactly; otherwise the union is kept, and gaps of up to 64 bytes between ranges that were added like
   this are closed. An overlap with other contents is refused. 0, EINVAL, ENOMEM. */
int oh_ranges_add(uintptr_t begin, uintptr_t end, enum oh_ranges_contents, bool exclusive);

/* Removes [begin, end). `exclusive`: it must be covered by ranges that were added as such. 0, EINVAL, ENOMEM. */
int oh_ranges_remove(uintptr_t begin, uintptr_t end, enum oh_ranges_contents, bool exclusive);

/* The contents at an address, or 0. Lock-free. */
unsigned oh_ranges_at(uintptr_t address);

size_t oh_ranges_count(void);
void oh_ranges_validate(void);

/* For start.c. */
void oh_ranges_lock(void);
void oh_ranges_unlock(void);

#endif
