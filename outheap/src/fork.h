/* SPDX-License-Identifier: MIT */
/* Fork: all locks are held across it, so that the child finds all structures consistent.

   The report's lock is first, since its holder waits for samplers, and a sampler may call public functions that take
   any other lock. The others are taken from the top of LAYERS downwards, as everywhere: a function that holds a lock
   calls lower layers only. */
#ifndef OH_FORK_H
#define OH_FORK_H

/* Once; by oh_start. */
void oh_fork_prepare(void);

#endif
