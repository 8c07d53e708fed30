/* SPDX-License-Identifier: MIT */
/* The stock: whole chunks of address space that are reserved and not yet claimed for a space. No locks: reserve.c has
   one. */
#ifndef OH_STOCK_H
#define OH_STOCK_H

#include "config.h"
#include <stdbool.h>

/* Adds the whole chunks of [from, to). False: there are none, or no memory for the record; then they stay reserved and
   unused. */
bool oh_stock_add(uintptr_t from, uintptr_t to);

/* Takes `bytes`, whole chunks, from the smallest extent that is large enough, at its high or its low end. They have
   records in page.h. 0: none. */
uintptr_t oh_stock_take(size_t bytes, bool high);

/* Sees to it that the next `n` additions do not fail, each of up to `bytes` of address space in total. */
bool oh_stock_prepare(size_t bytes, size_t n);

size_t oh_stock_bytes(void);
void oh_stock_validate(void);

#endif
