# SPDX-License-Identifier: MIT
"""CI runs a third of the matrix a day: nothing may be left out three days in a row."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from testing import matrix, rotation
from testing.compilers import EVERY, LISTED, Compiler, read_list
from testing.flavours import ALL_BOXROOT, BRIEF_BOXROOT

NEWEST = "5.5.2"
VERSIONS = ("5.5.2", "5.4.1", "5.3.0", "4.14.1")
START = 740_000  # any day
BOXROOT = [f"boxroot[{v}-{f}] unit/basics" for v, f in product(VERSIONS, ALL_BOXROOT)]
BOXROOT += [f"boxroot[5.1.0-{f}] unit/basics" for f in BRIEF_BOXROOT]
OTHERS = [
    "boxroot[5.5.2+outheap-release] model/alone",
    "boxroot[5.5.2+tsan-tsan] regress/forks",
    "outheap[4.14.1-bytecode] region/deep",
    "outheap[release] space/limited",
    "rust[5.3.0] exports/two-hundred",
    "tools/test_tools.py::test_a_bad_version_stops_make",
    "lint[5.5.2] all",
]


def days(label: str, newest: str = NEWEST, needs: tuple[str, ...] = ()) -> list[int]:
    return [day for day in range(START, START + 9) if rotation.is_for(day, label, newest, needs)]


def test_three_days_run_everything() -> None:
    for label in BOXROOT + OTHERS:
        found = {day % rotation.DAYS for day in days(label)}
        assert len(found) in (1, rotation.DAYS), label
        assert len(days(label)) == 3 * len(found), label


def test_a_day_has_every_flavour_and_several_compilers() -> None:
    """On the days of compilers that are tested in all flavours; on the others, most."""
    for day in range(START, START + rotation.DAYS):
        chosen = [label for label in BOXROOT if rotation.part_of(label, NEWEST) == rotation.day_of(day)]
        found = {label.split("-", 1)[1] for label in chosen}
        three = len([c for c in LISTED if c.tests == "all" and rotation.day_of(day) in c.days]) >= rotation.DAYS
        assert len(found) == len(ALL_BOXROOT) if three else len(found) > len(ALL_BOXROOT) / 2, found
        assert len({label.split("-")[0] for label in chosen}) > 1


def test_a_compiler_has_its_days() -> None:
    """No test is for a day on which the list does not have its compiler."""
    for label in BOXROOT:
        name = label.split("[")[1].split("-")[0]
        line = rotation.listed(name, NEWEST)
        assert line is not None and rotation.part_of(label, NEWEST) in line.days, label
    assert {EVERY[0], "4.14.1"} <= set(rotation.compilers_of(START)) & set(rotation.compilers_of(START + 1))


def test_what_asks_for_a_compiler_runs_on_its_days() -> None:
    for number, (name, line) in product(range(20), [(c.name, c) for c in LISTED]):
        found = days(f"outheap[5.5.2] test-{number}", needs=(name,))
        assert len(found) == 3 and {rotation.day_of(day) for day in found} <= set(line.days)


def test_the_list_is_read() -> None:
    (one,) = read_list("# a comment\n\n5.3.0   2,3  all  yes  some words\n")
    assert (one.name, one.days, one.tests, one.outheap, one.purpose) == ("5.3.0", (2, 3), "all", "yes", "some words")
    assert one.known_to_outheap == ("5.3.0",)
    (one,) = read_list("newest   1  all  5.4.1,5.5.2  some words\n")
    assert one.known_to_outheap == ("5.4.1", "5.5.2")
    assert all(set(c.days) <= {1, 2, 3} and c.days and c.purpose for c in LISTED)
    assert {c.tests for c in LISTED} <= {"all", "brief", "tsan", "one"}


@pytest.mark.parametrize("label", ["boxroot[5.2.0-release] unit/basics", "boxroot[5.6.0~rc1-release] unit/basics"])
def test_a_compiler_that_is_not_listed(label: str) -> None:
    assert len(days(label)) == 3


def test_daily() -> None:
    daily = {label for label in BOXROOT + OTHERS if len(days(label)) == 9}
    expected = [f"boxroot[5.5.2-{f}] unit/basics" for f in ("asan", "tsan", "checked-tiny")]
    assert daily == {*expected, OTHERS[0], OTHERS[1], OTHERS[-1]}


def test_other_compilers_are_not_the_newest() -> None:
    assert len(days("boxroot[5.3.0-tsan] unit/basics", newest="5.3.0")) == 9
    assert len(days("boxroot[5.4.1-tsan] unit/basics", newest="5.3.0")) == 3


def test_newest_may_be_a_release_that_is_listed_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a newer one cannot be had: it is tested once, as the newest."""
    monkeypatch.setenv(matrix.PREFIXES, "")
    monkeypatch.setattr(matrix, "find", lambda name: Compiler(Path("/5.4.1" if name == "newest" else f"/{name}")))
    options = {"flavours": "", "ocaml": "all", "everything": False, "today": False}
    matrix.choose(SimpleNamespace(getoption=options.get))  # type: ignore[arg-type]
    prefixes = [str(compiler.prefix) for compiler in matrix.compilers()]
    assert prefixes[0] == "/5.4.1" and len(prefixes) == len(set(prefixes)) == len(EVERY) - 1
    assert len(days("boxroot[5.4.1-tsan] unit/basics", newest="5.4.1")) == 9


def test_a_part_does_not_depend_on_other_tests() -> None:
    assert rotation.part_of("boxroot[5.5.2-tsan] unit/basics", NEWEST) == rotation.part_of(
        "boxroot[5.5.2-tsan] unit/new", NEWEST
    )


def test_who_runs_a_fifth_of_a_day_runs_everything_in_fifteen_days() -> None:
    """Any fifteen days: each test is in the first fifth of one of them."""
    cycle = rotation.DAYS * rotation.PARTS
    for begin in range(START, START + cycle):
        run: set[str] = set()
        for day in range(begin, begin + cycle):
            today = [label for label in BOXROOT + OTHERS if rotation.is_for(day, label, NEWEST)]
            run |= set(rotation.turned(day, today)[: -(-len(today) // rotation.PARTS)])
        assert run == {*BOXROOT, *OTHERS}, begin


def test_a_turn_leaves_nothing_out() -> None:
    for day in range(START, START + 2 * rotation.DAYS * rotation.PARTS):
        assert sorted(rotation.turned(day, list(range(7)))) == list(range(7))
    assert rotation.turned(START, []) == []
