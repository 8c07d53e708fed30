# SPDX-License-Identifier: MIT
"""What the helper and the domains do with each other (outheap/runtime/overlay/ocaml5/helper_thread.h, helper_domain.h), one step at
a time and in any order, in cycles of a small heap that model/helper_steps.c plays. The code is broken in one place at a
time, which must be noticed: also where a program meets the race too rarely to wait for it."""

from __future__ import annotations

import re

import pytest
from testing import matrix, models
from testing.models import Breakage
from testing.run import run

pytestmark = [pytest.mark.outheap, pytest.mark.random]

PROGRAM = "helper_steps"
CYCLES, LIMIT = 100_000, 120
ENDED = "if (!oh_helper_thread_marks() && oh_helper.stack.count == 0 && oh_helper.inbox_count == 0\n"
BREAKAGES = {
    "markers-are-not-counted": Breakage(
        "helper_domain.h", "if (!oh_helper.counted) {\n    oh_store_relaxed(", "if (false) {\n    oh_store_relaxed(",
    ),
    "number-does-not-rise": Breakage(
        "helper_domain.h", "oh_store_relaxed(&oh_helper.counted, true);\n    atomic_fetch_add(&num_domains_to_mark, 1);",
        "oh_store_relaxed(&oh_helper.counted, true);",
    ),
    "marking-ends-while-it-marks": Breakage("helper_domain.h", ENDED, ENDED.replace("!oh_helper_thread_marks() && ", "")),
    "marking-ends-before-its-stack": Breakage("helper_domain.h", ENDED, ENDED.replace("oh_helper.stack.count == 0 && ", "")),
    "marking-ends-before-its-inbox": Breakage("helper_domain.h", ENDED, ENDED.replace(" && oh_helper.inbox_count == 0", "")),
    "no-next-round-of-ephemerons": Breakage("helper_domain.h", "      ephe_next_cycle();\n", ""),
    "who-assists-is-not-counted": Breakage(
        "helper_domain.h", "  oh_helper_domain_take_part(d);\n  oh_helper_count(&oh_helper_counters.given, n);", "",
    ),
    "counted-is-not-asked-again": Breakage("helper_domain.h", "if (oh_helper.counted) { /* still", "if (true) { /* still"),
    "pools-are-handed-over": Breakage(
        "helper_domain.h", "return (oh_page_bits((uintptr_t)e.start) & OH_PAGE_OWNER) == OH_SPACE_MARKED + 1", "return false",
    ),
    "entries-are-lost-on-the-way": Breakage(
        "helper_domain.h", "  memmove(s->stack + kept, s->stack + n, (s->count - n) * sizeof(mark_entry));\n", "",
    ),
    "taken-from-a-stack-in-use": Breakage("helper_domain.h", "if (*count == 0 && !oh_helper_thread_marks()) {", "if (*count == 0) {"),
    "nobody-assists-who-must-end": Breakage(
        "helper_domain.h", "assists = complete || !available || behind, waits", "assists = behind, waits",
    ),
    "what-was-deferred-is-lost": Breakage("helper_thread.h", "    *all = *own;\n    *own = v;", "    *own = v;"),
    "more-that-was-deferred-is-lost": Breakage("helper_thread.h", "  all->count += own->count;\n", ""),
    "the-inbox-is-lost": Breakage(
        "helper_thread.h", "  oh_helper.stack.count = oh_helper.inbox_count;", "  oh_helper.stack.count = 0;",
    ),
    "the-inbox-takes-the-stack's-place": Breakage(
        "helper_thread.h", "if (oh_helper.stack.count == 0) oh_helper_thread_take_inbox();",
        "if (oh_helper.inbox_count != 0) oh_helper_thread_take_inbox();",
    ),
    "what-is-spilt-is-lost": Breakage("helper_thread.h", "  oh_helper.inbox_count = n;\n}", "}"),
    "what-it-does-is-asked-again": Breakage(
        "helper_thread.h", "bool marks = task == OH_HELPER_MARKS;", "bool marks = !oh_sweeping_waits();",
    ),
    "not-busy-while-it-marks": Breakage("helper_thread.h", "return oh_helper.state == OH_HELPER_MARKS ||", "return"),
}  # fmt: skip


def cycles(name: str = "sound", breakage: Breakage | None = None) -> tuple[bool, str]:
    folder = models.build(PROGRAM, (), name, breakage)
    outcome = run([f"./{PROGRAM}", str(matrix.seed()), str(CYCLES)], folder, folder / "log", LIMIT)
    return outcome.passed, outcome.text


def test_nothing_is_lost_and_each_cycle_can_end() -> None:
    passed, text = cycles()
    assert passed, text
    assert int(text.split(" with the helper")[0].split()[-1]) > CYCLES / 2, text


@pytest.mark.parametrize("name", BREAKAGES)
def test_breakage_is_noticed(name: str) -> None:
    passed, text = cycles(name, BREAKAGES[name])
    assert not passed and re.search(r"(helper_steps\.c|helped\.h|helping\.h):\d+: ", text), text
