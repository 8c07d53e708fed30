/* SPDX-License-Identifier: MIT */
#include "region_fault.h"
#include "region_record.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __GLIBC__
#define environment secure_getenv
#else
#define environment getenv
#endif

static struct sigaction before;

static void handle(int signal, siginfo_t *info, void *context)
{
  struct outheap_region_record_place p;
  if (outheap_region_record_find((uintptr_t)info->si_addr, &p)) {
    char line[160];
    int n = snprintf(line, sizeof line, "outheap: %s at %p, %zu bytes into the region at %p (%zu bytes)\n",
                     p.state == OUTHEAP_REGION_REVOKED ? "a region that was revoked was read"
                                                       : "a region, which is read-only, was written to",
                     info->si_addr, (size_t)((char *)info->si_addr - p.base), (void *)p.base, p.bytes);
    ssize_t written = n > 0 ? write(2, line, (size_t)n) : 0;
    (void)written;
    /* Said once: the instruction is tried again, and whoever was there before decides. */
    (void)sigaction(SIGSEGV, &before, NULL);
  }
  else if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(signal);
  else (void)sigaction(signal, &before, NULL);
}

void outheap_region_fault_start(void)
{
  char const *settings = environment("OUTHEAP");
  if (settings == NULL || strstr(settings, "region-faults=report") == NULL) return;
  if (sigaction(SIGSEGV, NULL, &before) != 0) return;
  struct sigaction new = before;
  new.sa_sigaction = handle;
  new.sa_flags = (new.sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
  (void)sigaction(SIGSEGV, &new, NULL);
}
