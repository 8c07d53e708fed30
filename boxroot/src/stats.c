/* SPDX-License-Identifier: MIT */
#include "depot.h"
#include "orphans.h"
#include <inttypes.h>
#include <stdio.h>

void boxroot_get_stats(boxroot_statistics *out)
{
  *out = (boxroot_statistics){ .pool_bytes = BXR_POOL_SIZE,
                               .pool_capacity = BXR_CAPACITY,
                               .bytes_reserved = bxr_depot_reserved_bytes() };
  for (unsigned id = 0; id < BXR_MAX_DOMAINS; id++) {
    bxr_counters *c = &bxr_domains[id].count;
#define SUM(field, meaning) out->field += bxr_load_relaxed(&c->field);
    BOXROOT_COUNTERS(SUM)
#undef SUM
  }
  out->pools_in_use += bxr_orphans_count();
}

void boxroot_print_stats(void)
{
  boxroot_statistics s;
  boxroot_get_stats(&s);
#if BOXROOT_CONSERVATIVE
  printf("boxroot: conservative with OCaml %s%s: all roots are visited at the start of each major cycle, while the "
         "program waits\n",
         OCAML_VERSION_STRING, BXR_KNOWN_RUNTIME ? "" : ", which it was not tested with");
#endif
  printf("boxroot: pools of %" PRIu64 " KiB, %" PRIu64 " roots each\n", s.pool_bytes / 1024, s.pool_capacity);
  printf("  pools in use: %" PRIu64 " (peak %" PRIu64 ", times purged %" PRIu64 "), address space: %" PRIu64 " MiB\n",
         s.pools_in_use, s.pools_peak, s.pools_purged, s.bytes_reserved >> 20);
  printf("  roots at the start of the last major cycle: at most %" PRIu64 "\n", s.roots_last_cycle);
  printf("  slow paths: create %" PRIu64 ", delete %" PRIu64 ", modify %" PRIu64 "; remote deletions: %" PRIu64 "\n",
         s.create_slow, s.delete_slow, s.modify_slow, s.delete_remote);
  printf("  minor scans: %" PRIu64 " (%.0f slots each), major cycles: %" PRIu64 ", other scans: %" PRIu64 "\n",
         s.minor_scans, s.minor_scans == 0 ? 0. : (double)s.minor_slots / (double)s.minor_scans, s.major_starts,
         s.other_scans);
  printf("  values darkened by modifications: %" PRIu64 ", pools marked by the library: %" PRIu64
         ", pools adopted: %" PRIu64 "\n",
         s.barrier, s.darkened_pools, s.pools_adopted);
}
