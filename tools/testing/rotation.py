# SPDX-License-Identifier: MIT
"""Which of the tests that `make test` leaves out CI runs on a date: a third of them, so that three days in a row run
everything. Flavours are dealt out to the compilers as in a Latin square, so that each day has every flavour with some
compiler, and every compiler with some flavours. What has found most faults runs every day: sanitizers over the roots,
and random tests, with the newest compiler. The part of a test depends on its name alone, so a new test moves no other.

On a machine that is too slow for all of a day's tests, those that come last are left out. So a day begins with one
half of its tests, and three days later with the other: whoever gets through half of them has run everything in a week.

Also where the time of a run goes."""

from __future__ import annotations

import datetime
import re
import zlib
from dataclasses import dataclass, field

DAYS = 3
DAILY = re.compile(r"^boxroot\[\S+-(asan|tsan|checked-tiny)\]|^\w+\[.*\] (model|torture)/|^lint\[")
OFFSETS = {"5.5": 2, "5.4": 0, "5.3": 1, "5.1": 0, "4.14": 2}  # of the days on which compilers run a flavour
LABEL = re.compile(r"(?P<product>\w+)\[(?P<version>\d+\.\d+)[^\s\]-]*-?(?P<flavour>[^\s\]]*)\] ?(?P<name>.*)")


def today() -> int:
    return datetime.date.today().toordinal()


def number(text: str) -> int:
    return zlib.crc32(text.encode())


def part_of(label: str) -> int:
    """0 to DAYS - 1: the date's ordinal modulo DAYS on which the test runs."""
    found = LABEL.match(label)
    if found is None or found["version"] not in OFFSETS:
        return number(label) % DAYS
    # All tests of Boxroot in a flavour share a build, those of Outheap a build for each program.
    parts = {"boxroot": "", "outheap": found["name"].split("/")[0]} if found["flavour"] else {}
    key = f"{found['product']} {found['flavour']} {parts.get(found['product'], found['name'])}"
    return (number(key) + OFFSETS[found["version"]]) % DAYS


def is_daily(label: str, newest: str) -> bool:
    found = LABEL.match(label)
    return (found is None or newest.startswith(f"{found['version']}.")) and DAILY.search(label) is not None


def is_for(day: int, label: str, newest: str) -> bool:
    return part_of(label) == day % DAYS or is_daily(label, newest)


def turned(day: int, tests: list) -> list:
    """In the order in which they begin."""
    middle = len(tests) // 2 if day // DAYS % 2 else 0
    return tests[middle:] + tests[:middle]


@dataclass
class Times:
    """Where the time went, by product and compiler; seconds of all workers together."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, int] = field(default_factory=dict)

    def add(self, label: str, seconds: float, is_call: bool) -> None:
        group = LABEL.match(label) and label.split("]")[0] + "]" or label.split("::")[0]
        self.seconds[group] = self.seconds.get(group, 0) + seconds
        self.tests[group] = self.tests.get(group, 0) + is_call

    def lines(self, most: int = 12) -> list[str]:
        largest = sorted(self.seconds, key=lambda g: -self.seconds[g])
        found = [f"{self.seconds[g]:7.0f} s  {self.tests[g]:5} tests  {g}" for g in largest[:most]]
        rest = largest[most:]
        if rest:
            seconds, tests = sum(self.seconds[g] for g in rest), sum(self.tests[g] for g in rest)
            found.append(f"{seconds:7.0f} s  {tests:5} tests  of {len(rest)} other groups")
        return found
