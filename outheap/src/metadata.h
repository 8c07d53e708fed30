/* SPDX-License-Identifier: MIT */
/* Memory for the allocator's own records. It comes from the system directly, since malloc may itself be built on this
   allocator's callers. It is never given back. */
#ifndef OH_METADATA_H
#define OH_METADATA_H

#include <stddef.h>

/* Filled with zeroes, aligned to cache lines; NULL if there is no memory. Any thread. */
void *oh_metadata_alloc(size_t bytes);

/* For fork.c. */
void oh_metadata_lock(void);
void oh_metadata_unlock(void);

#endif
