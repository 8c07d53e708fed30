/* SPDX-License-Identifier: MIT */
/* Copying a node into its cell. What it refers to is copied along, with sharing and cycles, except for what stays where
   it is: immediates, cells, and static data. Copied are records, variants, tuples, arrays, strings, floats, int32,
   int64, nativeint, also from regions. Refused are closures and objects (but for static ones, and extension
   constructors that are), lazy values, abstract and other custom blocks, continuations, foreign pointers.

   All functions: with the lock, and without a poll between `measure` and `fill`. */
#ifndef OUTHEAP_HASHCONS_COPY_H
#define OUTHEAP_HASHCONS_COPY_H

#include "hashcons_memory.h"

enum outheap_hashcons_copy_result {
  OUTHEAP_HASHCONS_COPY_FITS, OUTHEAP_HASHCONS_COPY_NO_MEMORY, OUTHEAP_HASHCONS_COPY_REFUSED
};

/* Words of the cell for a node. */
enum outheap_hashcons_copy_result outheap_hashcons_copy_measure(value node, size_t *words);

/* Fills a cell for the node that was measured last. `room`: words of the cell. */
void outheap_hashcons_copy_fill(outheap_hashcons_cell *, size_t room, value node, value hkey, value tag);

/* Why the node that was measured last was refused: "PATH: KIND". */
void outheap_hashcons_copy_explain(char *text, size_t size);

/* Returns memory that a large node took. */
void outheap_hashcons_copy_done(void);

#endif
