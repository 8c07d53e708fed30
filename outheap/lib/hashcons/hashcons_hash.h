/* SPDX-License-Identifier: MIT */
/* The hash of the polymorphic interface. `Hashtbl.hash` looks at ten numbers or strings, so that lists or records that
   differ further on have equal hashes. This one looks at 64, but does not go down a term: of a block that looks as a
   hash-consed value does ((int, int, node), not negative and positive) the two integers count first, since they tell
   such values apart, and all that lies behind them counts for six.

   It depends on nothing but what `compare` compares, so what `compare` finds equal has one hash: a copy in the heap
   of what lies in a cell as well. It passes over what cannot be compared. */
#ifndef OUTHEAP_HASHCONS_HASH_H
#define OUTHEAP_HASHCONS_HASH_H

#include "hashcons_config.h"

/* 0 to 2^30 - 1. Neither allocates nor raises. Cost: 1.3 times that of Hashtbl.hash for a term or a small node; half a
   microsecond at most for numbers, and the whole of strings. */
intnat outheap_hashcons_hash(value);

#endif
