/* SPDX-License-Identifier: MIT */
#include "leaks.h"

#if BOXROOT_DEBUG
#include "object.h"
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

static bool at_exit_wanted; /* (atomic) */
extern int __cxa_atexit(void (*)(void *), void *, void *) __attribute__((weak));

static void report_at_exit(void *unused)
{
  (void)unused;
  if (bxr_account_live() > 0) bxr_leaks_report(" at exit");
}

/* The object stays, so that the report is made when the process exits. */
void bxr_leaks_setup(void)
{
  if (!bxr_account_wanted("BOXROOT_LEAKS") || bxr_load_relaxed(&at_exit_wanted)) return;
  bxr_object_pin();
  bxr_store_relaxed(&at_exit_wanted, true);
}

/* C++ objects with static storage duration end their roots at the exit: those of the program among the functions for
   the exit, in the reverse order of their construction; those of a shared object among its destructors, of which this
   one comes last by its priority. Those of other shared objects may come after this object's destructors. What is
   registered here comes after them, where the C library allows it at this point (glibc does). */
__attribute__((destructor(101))) static void when_process_exits(void)
{
  if (!bxr_load_relaxed(&at_exit_wanted)) return;
  if (__cxa_atexit == NULL || __cxa_atexit(report_at_exit, NULL, NULL) != 0) report_at_exit(NULL);
}

void bxr_leaks_teardown(void)
{
  if (bxr_account_wanted("BOXROOT_LEAKS") && bxr_account_live() > 0) bxr_leaks_report(" at teardown");
}
#endif
