/* SPDX-License-Identifier: MIT */
/* The counters of boxroot_get_stats: the one list from which boxroot.h, the library and the OCaml module have them (the
   record in boxroot.ml repeats it, and a test compares). */
#ifndef BOXROOT_STATISTICS_H
#define BOXROOT_STATISTICS_H

/* X(name, meaning): of the library as a whole. */
#define BOXROOT_FIGURES(X) \
  X(pool_bytes, "size of a pool") \
  X(pool_capacity, "roots per pool") \
  X(bytes_reserved, "address space taken from the system")

/* The same, of each domain: summed over all domains that there were. Updated on slow paths only. */
#define BOXROOT_COUNTERS(X) \
  X(pools_in_use, "pools that hold, or are about to hold, roots") \
  X(pools_peak, "sum over domains of the most pools each has had in use") \
  X(pools_purged, "times the memory of a pool was purged") \
  X(pools_adopted, "pools adopted from domains that ended") \
  X(roots_last_cycle, "live roots at the start of the last major cycle (OCaml 5), an upper bound") \
  X(create_slow, "creations that left the inline path") \
  X(delete_slow, "deletions that left the inline path, on the owning domain") \
  X(delete_remote, "deletions carried out that came without the owner's lock, in a scan, or while marking") \
  X(modify_slow, "modifications that left the inline path") \
  X(barrier, "values darkened because their root was modified while marking was under way (OCaml 5)") \
  X(darkened_pools, "pools whose values the library marked itself (OCaml 5)") \
  X(minor_scans, "minor collections in which roots were scanned") \
  X(minor_slots, "slots looked at in them") \
  X(major_starts, "starts of a major cycle that handed pools to the marker (OCaml 5)") \
  X(other_scans, "other visits of all roots: compaction, heap verification, marking in OCaml 4.14")

#endif
