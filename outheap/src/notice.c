/* SPDX-License-Identifier: MIT */
#include "notice.h"
#include "atomic.h"
#include "log.h"

static char const *const messages[OH_NOTICES] = {
  [OH_NOTICE_ZONE] = ("%zu bytes of the heap lie outside of its part of the address space, where foreign pointers may "
                      "lead: something else is there, or a limit (ulimit -v) is reached"),
  [OH_NOTICE_MEMORY] = "the system refused %zu bytes: a limit (ulimit, cgroup, vm.overcommit_memory), or no memory",
  [OH_NOTICE_HUGE] = "no huge pages for %zu bytes: the system refused the advice, or its mode is `never`",
};
static size_t counts[OH_NOTICES];
static unsigned shown;

void oh_notice(enum oh_notice kind, size_t bytes)
{
  if (oh_fetch_add_relaxed(&counts[kind], 1) == 0 && (oh_load_relaxed(&shown) >> kind & 1))
    oh_log(messages[kind], bytes);
}

void oh_notice_show(unsigned kinds) { oh_store_relaxed(&shown, kinds); }
size_t oh_notice_count(enum oh_notice kind) { return oh_load_relaxed(&counts[kind]); }
