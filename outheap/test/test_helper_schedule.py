# SPDX-License-Identifier: MIT
"""The helper's own code under a scheduler that tries many orders of its thread, two domains and a thread of C
(model/helper_schedule.c). The code is broken in one place at a time, which must be noticed: also where a program meets
the race too rarely to wait for it."""

from __future__ import annotations

import pytest
from testing import matrix, models
from testing.models import Breakage
from testing.run import Outcome, run

pytestmark = [pytest.mark.outheap, pytest.mark.random]

PROGRAM = "helper_schedule"
CYCLES, LIMIT = 100_000, 120
THREAD, DOMAIN, QUEUE, SERVICE = "helper_thread.h", "helper_domain.h", "sweep_queue.h", "service.c"
ENDED = "if (!oh_helper_thread_marks() && oh_helper.stack.count == 0 && oh_helper.inbox_count == 0"
OVER = "bool over = q->in_hand == 0 && q->back == 0;"
BREAKAGES = {
    # Who is counted, and when the helper's marking has ended.
    "markers-are-not-counted": Breakage(
        DOMAIN, "if (!oh_helper.counted) {\n    oh_store_relaxed(", "if (false) {\n    oh_store_relaxed("
    ),
    "number-does-not-rise": Breakage(
        DOMAIN,
        "oh_store_relaxed(&oh_helper.counted, true);\n    atomic_fetch_add(&num_domains_to_mark, 1);",
        "oh_store_relaxed(&oh_helper.counted, true);",
    ),
    "marking-ends-while-it-marks": Breakage(DOMAIN, ENDED, ENDED.replace("!oh_helper_thread_marks() && ", "")),
    "marking-ends-before-its-stack": Breakage(DOMAIN, ENDED, ENDED.replace("oh_helper.stack.count == 0 && ", "")),
    "marking-ends-before-its-inbox": Breakage(DOMAIN, ENDED, ENDED.replace(" && oh_helper.inbox_count == 0", "")),
    "marking-ends-before-what-was-deferred": Breakage(
        DOMAIN, "_count == 0\n        && oh_helper.deferred.count == 0", "_count == 0"
    ),
    "no-next-round-of-ephemerons": Breakage(DOMAIN, "      ephe_next_cycle();\n", ""),
    "who-assists-is-not-counted": Breakage(
        DOMAIN, "  oh_helper_domain_take_part(d);\n  oh_helper_count(&oh_helper_counters.given, n);", ""
    ),
    "counted-is-not-asked-again": Breakage(DOMAIN, "if (oh_helper.counted) { /* still", "if (true) { /* still"),
    # Entries and deferred values.
    "pools-are-handed-over": Breakage(
        DOMAIN, "return (oh_page_bits((uintptr_t)e.start) & OH_PAGE_OWNER) == OH_SPACE_MARKED + 1", "return false"
    ),
    "entries-are-lost-on-the-way": Breakage(
        DOMAIN, "  memmove(s->stack + kept, s->stack + n, (s->count - n) * sizeof(mark_entry));\n", ""
    ),
    "taken-from-a-stack-in-use": Breakage(
        DOMAIN, "if (*count == 0 && !oh_helper_thread_marks()) {", "if (*count == 0) {"
    ),
    "nobody-assists-who-must-end": Breakage(
        DOMAIN, "assists = complete || !available || behind, waits", "assists = behind, waits"
    ),
    "what-was-deferred-is-lost": Breakage(THREAD, "    *all = *own;\n    *own = v;", "    *own = v;"),
    "more-that-was-deferred-is-lost": Breakage(THREAD, "  all->count += own->count;\n", ""),
    "the-inbox-is-lost": Breakage(
        THREAD, "  oh_helper.stack.count = oh_helper.inbox_count;", "  oh_helper.stack.count = 0;"
    ),
    "the-inbox-takes-the-stack's-place": Breakage(
        THREAD,
        "if (oh_helper.stack.count == 0) oh_helper_thread_take_inbox();",
        "if (oh_helper.inbox_count != 0) oh_helper_thread_take_inbox();",
    ),
    "what-is-spilt-is-lost": Breakage(THREAD, "  oh_helper.inbox_count = n;\n}", "}"),
    # The thread: a domain may take the pools back between two looks, so that it would mark without being counted.
    "what-it-does-is-asked-again": Breakage(
        THREAD, "bool marks = task == OH_HELPER_MARKS;", "bool marks = !oh_sweeping_waits();"
    ),
    "not-seen-to-mark": Breakage(THREAD, "return oh_helper.state == OH_HELPER_MARKS ||", "return"),
    "forks-in-a-batch": Breakage(
        THREAD, "while (oh_helper_thread_works()) pthread_cond_wait", "while (false) pthread_cond_wait"
    ),
    "a-child-keeps-the-thread": Breakage(
        THREAD, "if (oh_helper.state == OH_HELPER_RESTS) oh_helper_thread_become(OH_HELPER_ABSENT);", ""
    ),
    "nobody-wakes-a-fork": Breakage(
        THREAD, "if (oh_helper.forks != 0) pthread_cond_broadcast", "if (false) pthread_cond_broadcast"
    ),
    "it-is-not-woken-to-end": Breakage(
        THREAD,
        "    default: break;\n  }\n  pthread_cond_signal(&oh_helper.work);",
        "    default: break;\n  }",
    ),
    "ends-in-a-batch": Breakage(
        THREAD,
        "case OH_HELPER_MARKS: oh_helper_thread_become(OH_HELPER_MARKS_LAST); break;",
        "case OH_HELPER_MARKS: oh_helper.state = OH_HELPER_ENDED; break;",
    ),
    "one-does-not-wait-for-the-end": Breakage(SERVICE, "  pthread_mutex_lock(&s->ending);\n  ask();", "  ask();"),
    # Pools.
    "finalisers-in-the-helper": Breakage(
        QUEUE, "if (heap != &oh_sweeping_helper_heap) return false;", "if (true) return false;"
    ),
    "swept-while-pools-are-in-hand": Breakage(QUEUE, OVER, "bool over = q->back == 0;"),
    "swept-while-pools-are-not-collected": Breakage(QUEUE, OVER, "bool over = q->in_hand == 0;"),
    "swept-while-pools-are-queued": Breakage(
        QUEUE, "    if (p != NULL) {\n      p->next = q->queued[list];", "    if (false) {\n      p->next = NULL;"
    ),
    "statistics-are-lost": Breakage(QUEUE, "  heap->stats.pool_live_words += q->stats.pool_live_words;\n", ""),
    "work-counts-twice": Breakage(QUEUE, "  q->swept_words = q->work = 0;\n", "  q->swept_words = 0;\n"),
    "handed-over-without-the-lock": Breakage(
        QUEUE, "  if (!oh_sweeping_try()) return;\n  for (unsigned s", "  (void)oh_sweeping_try();\n  for (unsigned s"
    ),
    "the-owner-is-not-put-back": Breakage(QUEUE, "  p->owner = owner;\n", ""),
    "nothing-is-swept-in-time": Breakage(
        QUEUE, "  if (taken != 0) heap->next_to_sweep = 0;\n  return taken != 0;", "  return false;"
    ),
    "no-drain-at-shutdown": Breakage(
        QUEUE, "  oh_sweeping_lock();\n  CAMLassert(q->in_hand == 0);", "  oh_sweeping_lock();\n  if (true) return;"
    ),
}


def cycles(name: str = "sound", breakage: Breakage | None = None) -> Outcome:
    folder = models.build(PROGRAM, (), name, breakage)
    return run([f"./{PROGRAM}", str(matrix.seed()), str(CYCLES)], folder, folder / "log", LIMIT)


def test_nothing_is_lost_and_each_cycle_can_end() -> None:
    sound = cycles()
    assert sound.passed, sound.text
    assert int(sound.text.split(" with the helper")[0].split()[-1]) > CYCLES / 2, sound.text


@pytest.mark.parametrize("name", BREAKAGES)
def test_breakage_is_noticed(name: str) -> None:
    """By an assertion, or because the program crashes."""
    broken = cycles(name, BREAKAGES[name])
    assert broken.code < 0 and not broken.late, broken.text
