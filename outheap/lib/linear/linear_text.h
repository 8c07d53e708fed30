/* SPDX-License-Identifier: MIT */
/* Strings in cells: of one group for all, with a pool for each of some sizes; where several domains run, with up to
   four. Where a pool would have to grow, a string goes into a cell of one of the next two sizes that was freed, if
   there is one. */
#ifndef OUTHEAP_LINEAR_TEXT_H
#define OUTHEAP_LINEAR_TEXT_H

#include "linear_pool.h"

extern struct outheap_linear_group outheap_linear_texts;

/* Copies a string of OCaml, of fewer than OUTHEAP_LINEAR_MOST words of 8 bytes. Returns 0 if there is no memory. */
value outheap_linear_text_new(value string);

#endif
