/* SPDX-License-Identifier: MIT */
/* What the system refused, and the program goes on without. Each refusal is counted; the first of a kind is also
   printed, if that was asked for. */
#ifndef OH_NOTICE_H
#define OH_NOTICE_H

#include <stddef.h>

enum oh_notice {
  OH_NOTICE_ZONE,   /* the heap's part of the address space: something else lies there, or a limit is reached */
  OH_NOTICE_MEMORY, /* address space or memory: a limit, or none is left */
  OH_NOTICE_HUGE,   /* advice on huge pages */
  OH_NOTICES
};

/* Any thread, with any lock. `bytes`: what was asked for. Keeps errno. Cost: an addition. */
void oh_notice(enum oh_notice, size_t bytes);

/* From now on the first one of these kinds is printed; `kinds` has a bit for each. */
void oh_notice_show(unsigned kinds);

size_t oh_notice_count(enum oh_notice);

#endif
