/* SPDX-License-Identifier: MIT */
/* What is done with a node: its hash is computed, and it is copied into a cell. */
#ifndef OUTHEAP_HASHCONS_NODE_H
#define OUTHEAP_HASHCONS_NODE_H

#include "hashcons_memory.h"

/* The hash of the polymorphic interface, 0 to 2^30 - 1. `Hashtbl.hash` looks at ten numbers or strings, so that lists
   or records that differ further on have equal hashes. This one looks at 64, but does not go down a term: of a block
   that looks as a hash-consed value does ((int, int, node), the first not negative and the second positive) the two
   integers count first, since they tell such values apart, and all that lies behind them counts for six.

   It depends on nothing but what `compare` compares, so what `compare` finds equal has one hash: a copy in the heap of
   what lies in a cell as well. It passes over what cannot be compared. It neither allocates nor raises, and needs no
   lock. Cost: 1.3 times that of Hashtbl.hash for a term or a small node; half a microsecond at most for numbers, and
   the whole of strings. */
intnat outheap_hashcons_node_hash(value);

/* --- the copy --------------------------------------------------------------------------------------------------------
   What a node refers to is copied along, with sharing and cycles, except for what stays where it is: immediates, cells,
   and static data. The node itself is copied from these, too, unless it is another value, or of static data what cannot
   be copied. Copied are records, variants, tuples, arrays, strings, floats, int32, int64, nativeint, also from
   regions. Refused are closures and objects (but for static ones, and extension constructors that are), lazy values,
   abstract and other custom blocks, continuations, foreign pointers.

   All functions are called with the lock held, and without a poll between `measure` and `fill`. */

enum outheap_hashcons_node_result {
  OUTHEAP_HASHCONS_NODE_FITS, OUTHEAP_HASHCONS_NODE_NO_MEMORY, OUTHEAP_HASHCONS_NODE_REFUSED
};

/* Computes the words of the cell for a node. */
enum outheap_hashcons_node_result outheap_hashcons_node_measure(value node, size_t *words);

/* Fills a cell, which has `room` words, with the node that was measured last. */
void outheap_hashcons_node_fill(outheap_hashcons_cell *, size_t room, value node, value hkey, value tag);

/* Writes why the node that was measured last was refused: "PATH: KIND". */
void outheap_hashcons_node_explain(char *text, size_t size);

/* Returns memory that a large node took. */
void outheap_hashcons_node_done(void);

#endif
