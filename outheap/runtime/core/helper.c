/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "helper.h"
#include "os.h"
#include "proc.h"
#include "settings.h"
#include <pthread.h>
#include <string.h>

struct oh_helper_counters oh_helper_counters;
struct oh_helper_fork const *oh_helper_forks;

/* Each side writes its own variable and then reads the other's, both sequentially consistent: so whoever ends the
   helper sees `stop`, or the helper sees `ended`. */
static void (*stop)(void);
static bool ended;

void oh_helper_end(void)
{
  __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
  void (*function)(void) = __atomic_load_n(&stop, __ATOMIC_SEQ_CST);
  if (function != NULL) function();
}

bool oh_helper_may_start(void (*function)(void))
{
  __atomic_store_n(&stop, function, __ATOMIC_SEQ_CST);
  return !__atomic_load_n(&ended, __ATOMIC_SEQ_CST);
}

/* The last ones, at their number modulo OH_HELPER_SPANS. Under the lock; `noted` is also read without it: as long as
   it is 0, there has been no helper, so that forks do not know the lock. */
enum { OH_HELPER_SPANS = 1024 };
static struct {
  pthread_mutex_t lock;
  struct outheap_helper_span all[OH_HELPER_SPANS];
  size_t noted, taken; /* taken <= noted */
} spans = { .lock = PTHREAD_MUTEX_INITIALIZER };

void oh_helper_lock_spans(void) { pthread_mutex_lock(&spans.lock); }

void oh_helper_unlock_spans(bool child)
{
  if (child) spans.taken = spans.noted;
  pthread_mutex_unlock(&spans.lock);
}

void oh_helper_note(bool marks, uint64_t began, uint64_t ended, size_t work)
{
  oh_helper_lock_spans();
  size_t n = spans.noted;
  spans.all[n % OH_HELPER_SPANS] = (struct outheap_helper_span){ n, began, ended, work, marks };
  oh_store_relaxed(&spans.noted, n + 1);
  oh_helper_unlock_spans(false);
  oh_helper_count(&oh_helper_counters.spans, 1);
}

/* A few at a time, and not to the caller's memory, which may be new: whoever has the lock makes the helper wait, with
   its own lock in hand. */
size_t oh_helper_take(struct outheap_helper_span *to, size_t most)
{
  enum { AT_ONCE = 16 };
  struct outheap_helper_span some[AT_ONCE];
  size_t n = 0, taken;
  if (oh_load_relaxed(&spans.noted) == 0) return 0;
  do {
    oh_helper_lock_spans();
    if (spans.noted - spans.taken > OH_HELPER_SPANS) spans.taken = spans.noted - OH_HELPER_SPANS;
    for (taken = 0; taken < AT_ONCE && n + taken < most && spans.taken < spans.noted; taken++, spans.taken++)
      some[taken] = spans.all[spans.taken % OH_HELPER_SPANS];
    oh_helper_unlock_spans(false);
    if (taken != 0) memcpy(to + n, some, taken * sizeof *some);
    n += taken;
  } while (taken == AT_ONCE);
  return n;
}

void oh_helper_refuse(void)
{
  static bool told;
  if (oh_settings.helper == OH_SETTINGS_HELPER_OFF || told) return;
  told = true;
  oh_log("OUTHEAP: helper is not available for this version of OCaml, this processor, or this flavour");
}

unsigned oh_helper_processors(void)
{
  static unsigned limit;
  static bool known;
  unsigned n = oh_os_processors();
  if (!known) {
    limit = oh_proc_group_processors();
    known = true;
  }
  if (limit != 0 && limit < n) n = limit;
  return n;
}
