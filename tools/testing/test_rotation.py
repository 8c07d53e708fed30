# SPDX-License-Identifier: MIT
"""CI runs a third of the matrix a day: nothing may be left out three days in a row."""

from __future__ import annotations

from itertools import product

from testing import rotation
from testing.flavours import ALL_BOXROOT

VERSIONS = ("5.4.1", "5.3.0", "4.14.1")
START = 740_000  # any day
BOXROOT = [f"boxroot[{v}-{f}] unit/basics" for v, f in product(VERSIONS, ALL_BOXROOT)]
OTHERS = [
    "boxroot[5.4.1+outheap-release] model/alone",
    "boxroot[5.4.1+tsan-tsan] regress/forks",
    "outheap[4.14.1-bytecode] region/deep",
    "outheap[release] space/limited",
    "rust[5.3.0] exports/two-hundred",
    "tools/test_tools.py::test_a_bad_version_stops_make",
    "lint[5.4.1] all",
]


def days(label: str, newest: str = "5.4.1") -> list[int]:
    return [day for day in range(START, START + 9) if rotation.is_for(day, label, newest)]


def test_three_days_run_everything() -> None:
    for label in BOXROOT + OTHERS:
        found = {day % rotation.DAYS for day in days(label)}
        assert len(found) in (1, rotation.DAYS), label
        assert len(days(label)) == 3 * len(found), label


def test_a_day_has_every_flavour_and_every_compiler() -> None:
    for day in range(START, START + rotation.DAYS):
        chosen = [label for label in BOXROOT if rotation.part_of(label) == day % rotation.DAYS]
        assert len(chosen) == len(ALL_BOXROOT)
        assert {label.split("-", 1)[1] for label in chosen} == {f"{f}] unit/basics" for f in ALL_BOXROOT}
        assert len({label.split("-")[0] for label in chosen}) > 1


def test_daily() -> None:
    daily = {label for label in BOXROOT + OTHERS if len(days(label)) == 9}
    expected = [f"boxroot[5.4.1-{f}] unit/basics" for f in ("asan", "tsan", "checked-tiny")]
    assert daily == {*expected, OTHERS[0], OTHERS[1], OTHERS[-1]}


def test_other_compilers_are_not_the_newest() -> None:
    assert len(days("boxroot[5.3.0-tsan] unit/basics", newest="5.3.0")) == 9
    assert len(days("boxroot[5.4.1-tsan] unit/basics", newest="5.3.0")) == 3


def test_a_part_does_not_depend_on_other_tests() -> None:
    assert rotation.part_of("boxroot[5.4.1-tsan] unit/basics") == rotation.part_of("boxroot[5.4.1-tsan] unit/new")


def test_who_runs_half_of_a_day_runs_everything_in_a_week() -> None:
    """Any seven days: each test is in the first half of one of them."""
    for begin in range(START, START + 2 * rotation.DAYS):
        run: set[str] = set()
        for day in range(begin, begin + 7):
            today = [label for label in BOXROOT + OTHERS if rotation.is_for(day, label, "5.4.1")]
            run |= set(rotation.turned(day, today)[: (len(today) + 1) // 2])
        assert run == {*BOXROOT, *OTHERS}, begin


def test_a_turn_leaves_nothing_out() -> None:
    for day in range(START, START + 6):
        assert sorted(rotation.turned(day, list(range(7)))) == list(range(7))
    assert rotation.turned(START, []) == []
