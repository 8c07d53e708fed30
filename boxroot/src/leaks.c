/* SPDX-License-Identifier: MIT */
#include "leaks.h"

#if BOXROOT_DEBUG
#include <stdio.h>
#include <stdlib.h>

void bxr_leaks_report(char const *when)
{
  uint64_t live = bxr_account_live();
  fprintf(stderr, "boxroot: %llu root%s live%s\n", (unsigned long long)live, live == 1 ? " is" : "s are", when);
  bxr_site_count *places = live == 0 ? NULL : malloc(live * sizeof(bxr_site_count));
  if (places == NULL) return;
  bxr_site_print_counts(places, bxr_account_live_sites(places, live), "created at");
  free(places);
}

static void report_at_exit(void)
{
  if (bxr_account_live() > 0) bxr_leaks_report(" at exit");
}

void bxr_leaks_setup(void)
{
  static bool registered;
  if (bxr_account_wanted("BOXROOT_LEAKS") && !registered) registered = atexit(report_at_exit) == 0;
}

void bxr_leaks_teardown(void)
{
  if (bxr_account_wanted("BOXROOT_LEAKS") && bxr_account_live() > 0) bxr_leaks_report(" at teardown");
}
#endif
