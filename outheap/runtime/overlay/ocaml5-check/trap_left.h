/* SPDX-License-Identifier: MIT */
/* What collections have left: which address belonged to what, for the report. */
#ifndef OH_TRAP_LEFT_H
#define OH_TRAP_LEFT_H

#include "prelude.h"
#include <stdbool.h>

/* What asks for a collection, and where: */
enum oh_trap_left_cause {
  OH_TRAP_RUNTIME,  /* the runtime itself: its minor heap is full */
  OH_TRAP_ALLOC,    /* an allocation from C */
  OH_TRAP_CALLBACK, /* a callback begins */
  OH_TRAP_RELEASE,  /* the release of the domain lock */
  OH_TRAP_POLL      /* caml_process_pending_actions */
};

#define OH_TRAP_FRAMES 8

/* What asked for a collection. frames[0, depth): return addresses in C, from the inside. */
struct oh_trap_left_reason { enum oh_trap_left_cause cause; int depth; void *frames[OH_TRAP_FRAMES]; };

/* [begin, end) was left by a collection.
   A minor heap: blocks lie one behind the other from `first` on, block_words == 0.
   A pool, or a large block: blocks of block_words words from `first` on, each with its forwarding pointer, if it has
   moved; `all_dead`: none has. */
struct oh_trap_left {
  uintptr_t begin, first, end;
  size_t block_words;
  bool all_dead;
  uintnat collection; /* the number of minor collections then */
  int domain;
  struct oh_trap_left_reason reason;
};

/* Takes note of what was left. Any thread, without a lock; never fails: the oldest note is lost. The newest notes of
   pools and large blocks are kept, however many minor heaps are left meanwhile. */
#define OH_TRAP_LEFT_OLD 8192
void oh_trap_left_add(struct oh_trap_left const *);

/* The newest note that holds this address. False: it is too old, or nothing was ever left there. */
bool oh_trap_left_find(uintptr_t address, struct oh_trap_left *result);

/* The block of a note that holds an address, header included. False: its text cannot be told any more. */
struct oh_trap_left_block {
  uintptr_t value; /* where it was */
  uintptr_t now;   /* where it is; 0: it was dead */
  header_t header;
};
bool oh_trap_left_block_at(struct oh_trap_left const *, uintptr_t address, struct oh_trap_left_block *result);

/* Says how system pages may be used (PROT_NONE, …). Ends the program if the system refuses. */
void oh_trap_left_protect(uintptr_t from, uintptr_t to, int access);

/* Reads inaccessible memory. False: there is none. */
bool oh_trap_left_peek(uintptr_t at, void *to, size_t bytes);

#endif
