# SPDX-License-Identifier: MIT
"""What the helper and the domains do with each other (outheap/runtime/overlay/ocaml5/helping.h, helped.h), one step at
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
ENDED = "if (!oh_helping.busy && oh_helping.stack.count == 0 && oh_helping.inbox_count == 0 &&"
BREAKAGES = {
    "markers-are-not-counted": Breakage(
        "helped.h", "if (!oh_helping.counted) {\n    oh_store_relaxed(", "if (false) {\n    oh_store_relaxed(",
    ),
    "number-does-not-rise": Breakage(
        "helped.h", "oh_store_relaxed(&oh_helping.counted, true);\n    atomic_fetch_add(&num_domains_to_mark, 1);",
        "oh_store_relaxed(&oh_helping.counted, true);",
    ),
    "marking-ends-while-it-marks": Breakage("helped.h", ENDED, ENDED.replace("!oh_helping.busy && ", "")),
    "marking-ends-before-its-stack": Breakage("helped.h", ENDED, ENDED.replace("oh_helping.stack.count == 0 && ", "")),
    "marking-ends-before-its-inbox": Breakage("helped.h", ENDED, ENDED.replace(" oh_helping.inbox_count == 0 &&", "")),
    "no-next-round-of-ephemerons": Breakage("helped.h", "      ephe_next_cycle();\n", ""),
    "who-assists-is-not-counted": Breakage(
        "helped.h", "  oh_helped_take_part(d);\n  oh_helper_count(&oh_helper_counters.given, n);", "",
    ),
    "counted-is-not-asked-again": Breakage("helped.h", "if (oh_helping.counted) { /* still", "if (true) { /* still"),
    "pools-are-handed-over": Breakage(
        "helped.h", "return (oh_page_bits((uintptr_t)e.start) & OH_PAGE_OWNER) == OH_SPACE_MARKED + 1", "return false",
    ),
    "entries-are-lost-on-the-way": Breakage(
        "helped.h", "  memmove(s->stack + kept, s->stack + n, (s->count - n) * sizeof(mark_entry));\n", "",
    ),
    "taken-from-a-stack-in-use": Breakage("helped.h", "if (*count == 0 && !oh_helping.busy) {", "if (*count == 0) {"),
    "nobody-assists-who-must-end": Breakage(
        "helped.h", "assists = complete || !available || behind, waits", "assists = behind, waits",
    ),
    "what-was-deferred-is-lost": Breakage("helping.h", "    *all = *own;\n    *own = v;", "    *own = v;"),
    "more-that-was-deferred-is-lost": Breakage("helping.h", "  all->count += own->count;\n", ""),
    "the-inbox-is-lost": Breakage(
        "helping.h", "  oh_helping.stack.count = oh_helping.inbox_count;", "  oh_helping.stack.count = 0;",
    ),
    "the-inbox-takes-the-stack's-place": Breakage(
        "helping.h", "if (oh_helping.stack.count == 0) oh_helping_take_inbox();",
        "if (oh_helping.inbox_count != 0) oh_helping_take_inbox();",
    ),
    "what-is-spilt-is-lost": Breakage("helping.h", "  oh_helping.inbox_count = n;\n}", "}"),
    "what-it-does-is-asked-again": Breakage(
        "helping.h", "bool marks = task == OH_HELPING_MARKS;", "bool marks = !oh_sweeping_waits();",
    ),
    "not-busy-while-it-marks": Breakage("helping.h", "  oh_helping.busy = true;", ""),
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
