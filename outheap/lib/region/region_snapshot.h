/* SPDX-License-Identifier: MIT */
/* A copy (region_copy.h) of a value as it was at one moment, whatever other domains and threads do meanwhile. All of
   them are stopped while it begins. What takes longer than 2 ms is made by a second process, in its own view of the
   program's memory (region_runtime.h), if there is somebody who would have to wait. */
#ifndef OUTHEAP_REGION_SNAPSHOT_H
#define OUTHEAP_REGION_SNAPSHOT_H

#include "region_copy.h"

/* Returns true if the copy is made: base, used, mapped, blocks and copied are set; the memory is readable and writable.
   Returns false if there is an error, which is set; then nothing is left behind. The caller holds OCaml's lock, which
   may be released meanwhile. `waited` gets the nanoseconds in which other domains were stopped, the last time. */
bool outheap_region_snapshot_make(struct outheap_region_copy *, uint64_t *waited);

/* Returns the memory of a copy. */
void outheap_region_snapshot_drop(struct outheap_region_copy *);

/* Since the program began: copies made by a second process; the longest time in which others waited (nanoseconds). */
struct outheap_region_snapshot_counts { uint64_t second, longest; };
struct outheap_region_snapshot_counts outheap_region_snapshot_count(void);

#endif
