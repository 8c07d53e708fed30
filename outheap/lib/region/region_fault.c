/* SPDX-License-Identifier: MIT */
#include "region_fault.h"
#include "region_record.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __GLIBC__
#define environment secure_getenv
#else
#define environment getenv
#endif

static struct sigaction before;

/* The handler runs on a small stack, of which the processor's registers may have taken most; so it does without the C
   library's formatting, which needs kilobytes and is not made for handlers. */

static char *put(char *to, char const *text)
{
  while (*text != 0) *to++ = *text++;
  return to;
}

static char *put_number(char *to, uintptr_t n, unsigned base)
{
  char digits[20];
  int count = 0;
  do digits[count++] = "0123456789abcdef"[n % base];
  while ((n /= base) != 0);
  while (count != 0) *to++ = digits[--count];
  return to;
}

static __attribute__((noinline)) void report(uintptr_t address, struct outheap_region_record_place const *p)
{
  char line[200], *end = put(line, "outheap: ");
  end = put(end, p->state == OUTHEAP_REGION_REVOKED ? "a region that was revoked was read"
                                                    : "a region, which is read-only, was written to");
  end = put_number(put(end, " at 0x"), address, 16);
  end = put_number(put(end, ", "), address - (uintptr_t)p->base, 10);
  end = put_number(put(end, " bytes into the region at 0x"), (uintptr_t)p->base, 16);
  end = put_number(put(end, " ("), p->bytes, 10);
  end = put(end, " bytes)\n");
  ssize_t written = write(2, line, (size_t)(end - line));
  (void)written;
}

static void handle(int signal, siginfo_t *info, void *context)
{
  struct outheap_region_record_place p;
  if (outheap_region_record_find((uintptr_t)info->si_addr, &p)) {
    report((uintptr_t)info->si_addr, &p);
    /* Said once: the instruction is tried again, and whoever was there before decides. */
    (void)sigaction(SIGSEGV, &before, NULL);
  }
  else if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(signal);
  else (void)sigaction(signal, &before, NULL);
}

/* Is the runtime that the program is linked with, stock or variant, a debug runtime? Only these have the function. */
#ifdef DEBUG
static bool of_debug_runtime(void) { return true; }
#else
extern __attribute__((weak)) void caml_failed_assert(void);
static bool of_debug_runtime(void) { return caml_failed_assert != NULL; }
#endif

/* The last of the settings in the list counts. */
static bool wanted(char const *list)
{
  static char const name[] = "region-faults=";
  bool report = of_debug_runtime();
  while (list != NULL && *list != 0) {
    size_t length = strcspn(list, ","), n = sizeof name - 1;
    if (length == n + 6 && strncmp(list, name, n) == 0 && strncmp(list + n, "report", 6) == 0) report = true;
    if (length == n + 3 && strncmp(list, name, n) == 0 && strncmp(list + n, "off", 3) == 0) report = false;
    list += length + (list[length] == ',');
  }
  return report;
}

void outheap_region_fault_start(void)
{
  if (!wanted(environment("OUTHEAP")) || sigaction(SIGSEGV, NULL, &before) != 0) return;
  struct sigaction new = before;
  new.sa_sigaction = handle;
  new.sa_flags = (new.sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
  (void)sigaction(SIGSEGV, &new, NULL);
}
