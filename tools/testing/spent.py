# SPDX-License-Identifier: MIT
"""Processor time: what each group of tests has used, and what it may use. A group is a file of tests; for the C library
one of its flavours; all tests in Rust, which share what cargo builds. budgets.toml has what `make test` used on the
machine that recorded it, and how long a fixed piece of work took there; on another machine, or a busy one, that work
says by how much everything is slower."""

from __future__ import annotations

import resource
import statistics
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BUDGETS = Path(__file__).with_name("budgets.toml")
MINUTES = Path(__file__).with_name("minutes.toml")  # how long runs took: that the documents say so is tested
SLACK = 1.5  # times its budget, and so many seconds more (to install what is missing), that a group may use
SECONDS_MORE = 30.0
TEXT = """\
# Seconds of processor time that each group of tests uses in `make test`, where nothing is built yet; `elsewhere`: lists
# of tests, and what is built for them. Written by `tools/test --record-budgets`, read by tools/testing/spent.py.
work = {work:.4f} # seconds that a fixed piece of work took on that machine
elsewhere = {elsewhere:.0f}

[groups]
"""


def used() -> float:
    """By this process, and by those it has waited for."""
    of = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(r.ru_utime + r.ru_stime for r in of)


_built = 0.0
_building = False


@contextmanager
def building() -> Iterator[None]:
    """What is used inside is no test's: whichever comes first builds what others use too."""
    global _built, _building
    if _building:
        yield
        return
    begin, _building = used(), True
    try:
        yield
    finally:
        _built, _building = _built + used() - begin, False


def used_by_tests() -> float:
    return used() - _built


def work() -> float:
    """Seconds that a fixed piece of work takes now."""
    begin = time.thread_time()
    n = 0
    for i in range(200_000):
        n = (n * 31 + i) & 0xFFFF
    return time.thread_time() - begin


def group_of(label: str, nodeid: str) -> str:
    path = nodeid.partition("::")[0]
    if path.startswith("rust/"):
        return "rust"
    if path.endswith("boxroot/test/test_programs.py"):
        return f"{path} {label.partition(']')[0].rpartition('-')[2]}"
    return path


def record_minutes(what: str, minutes: float) -> None:
    lines = [line for line in MINUTES.read_text().splitlines() if not line.startswith(f"{what} =")]
    MINUTES.write_text("\n".join([*lines, f"{what} = {minutes:.1f}"]) + "\n")


@dataclass
class Spent:
    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, int] = field(default_factory=dict)
    each: dict[str, float] = field(default_factory=dict)
    total: float = 0.0  # of all workers, with what is no test's
    pieces: list[float] = field(default_factory=list)

    def add(self, group: str, test: str, seconds: float) -> None:
        self.seconds[group] = self.seconds.get(group, 0.0) + seconds
        self.tests[group] = self.tests.get(group, 0) + 1
        self.each[test] = self.each.get(test, 0.0) + seconds

    def longest(self) -> list[tuple[str, float]]:
        return sorted(self.each.items(), key=lambda item: -item[1])

    @property
    def elsewhere(self) -> float:
        return max(0.0, self.total - sum(self.seconds.values()))

    @property
    def piece(self) -> float:
        return statistics.median(self.pieces or [work() for _ in range(5)])

    def lines(self, budgets: Budgets, most: int = 15) -> list[str]:
        largest = sorted(self.seconds, key=lambda g: -self.seconds[g])
        row = "{:7.0f} {:>7} {:6}  {}".format
        known = budgets.groups.get
        found = [f"seconds  budget  tests  processor time, {self.total / 60:.1f} minutes in all"]
        found += [row(self.seconds[g], f"{known(g, 0):.0f}", self.tests[g], g) for g in largest[:most]]
        rest = largest[most:]
        found.append(row(sum(self.seconds[g] for g in rest), "", sum(self.tests[g] for g in rest), "other groups"))
        last = row(self.elsewhere, f"{budgets.elsewhere:.0f}", "", "lists of tests, and what is built for them")
        return [*found, last]

    def record(self) -> None:
        """The budgets of all groups, from a run that had everything to build."""
        text = TEXT.format(work=self.piece, elsewhere=self.elsewhere)
        BUDGETS.write_text(text + "".join(f'"{g}" = {s:.1f}\n' for g, s in sorted(self.seconds.items())))


@dataclass(frozen=True)
class Budgets:
    work: float
    elsewhere: float
    groups: dict[str, float]

    @property
    def total(self) -> float:
        return self.elsewhere + sum(self.groups.values())

    def outgrown(self, spent: Spent) -> list[str]:
        """What has used more than it may, a line each."""
        slower = max(1.0, spent.piece / self.work)
        found = []
        for group, seconds in sorted(spent.seconds.items()):
            if not self.groups:  # none was recorded
                break
            budget = self.groups.get(group, 0.0)
            if seconds > (budget * SLACK + SECONDS_MORE) * slower:
                found.append(
                    f"{group}: {seconds:.0f} s of processor time; its budget is {budget:.0f}, "
                    f"and this machine takes {slower:.2f} times as long"
                )
        return found


def budgets() -> Budgets:
    if not BUDGETS.exists():
        return Budgets(work(), 0.0, {})
    known = tomllib.loads(BUDGETS.read_text())
    return Budgets(known["work"], known["elsewhere"], known["groups"])
