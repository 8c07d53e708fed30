# SPDX-License-Identifier: MIT
"""Which of the tests that `make test` leaves out CI runs on a date: a third of them, so that three days in a row run
everything, with the compilers that the list (tools/testing/versions) has for the day. Flavours are dealt out to the
compilers as in a Latin square, so that each flavour has some compiler on most days, and a compiler that has all days
has some flavours on each. What has found most faults runs every day: sanitizers over the roots, and random tests, with
the newest compiler. The day of a test depends on its name and compiler alone, so a new test moves no other.

On a machine that is too slow for all of a day's tests, those that come last are left out. So a day begins with one
fifth of its tests, and three days later with the next: whoever gets through a fifth of them, as two cores do in the
time that CI has, has run everything in fifteen days.

    PYTHONPATH=tools python3 -m testing.rotation      says which day of the three it is, and with which compilers"""

from __future__ import annotations

import datetime
import os
import re
import zlib
from collections.abc import Sequence

from testing.compilers import LISTED, Listed

DAYS, PARTS = 3, 5
DATE = "BOXROOT_TEST_DATE"
DAILY = re.compile(r"^boxroot\[\S+-(asan|tsan|checked-tiny)\]|^\w+\[.*\] (model|torture)/|^lint\[")
LABEL = re.compile(
    r"(?P<product>\w+)\[(?P<version>\d+\.\d+\.\d+(?:~\w+)?)[^\s\]-]*-?(?P<flavour>[^\s\]]*)\] ?(?P<name>.*)"
)


def today() -> int:
    """The same for all workers of a run, also at midnight."""
    return int(os.environ.get(DATE) or datetime.date.today().toordinal())


def number(text: str) -> int:
    return zlib.crc32(text.encode())


def day_of(date: int) -> int:
    """1 to DAYS."""
    return date % DAYS + 1


def compilers_of(date: int) -> tuple[str, ...]:
    """Those that stand by themselves, the newest first."""
    return tuple(c.name for c in LISTED if c.is_plain and day_of(date) in c.days)


def listed(name: str, newest: str) -> Listed | None:
    """A compiler's line in the list; None: it was chosen by a user."""
    return next((c for c in LISTED if name in (c.name, c.name.replace("newest", newest))), None)


def position(line: Listed) -> int:
    """Among the compilers that stand by themselves."""
    return sum(c.is_plain for c in LISTED[: LISTED.index(line)])


def days_of(names: Sequence[str], newest: str) -> list[int]:
    """The days on which all of these compilers are there; any day, if there is none: then they are built for it."""
    lines = [line for name in names if (line := listed(name, newest))]
    every = range(1, DAYS + 1)
    return [day for day in every if all(day in line.days for line in lines)] or list(every)


def part_of(label: str, newest: str, needs: Sequence[str] = ()) -> int:
    """The day on which the test runs. `needs`: compilers that it asks for, beside that of its name."""
    found = LABEL.match(label)
    line = listed(found["version"], newest) if found else None
    if found is None or line is None:
        wanted, days = number(label), days_of(needs, newest)
    else:
        # All tests of Boxroot in a flavour share a build, those of Outheap a build for each program.
        parts = {"boxroot": "", "outheap": found["name"].split("/")[0]} if found["flavour"] else {}
        key = f"{found['product']} {found['flavour']} {parts.get(found['product'], found['name'])}"
        wanted, days = number(key) + position(line), days_of([found["version"], *needs], newest)
    day = day_of(wanted)
    return day if day in days else days[wanted // DAYS % len(days)]


def is_daily(label: str, newest: str) -> bool:
    found = LABEL.match(label)
    return (found is None or newest == found["version"]) and DAILY.search(label) is not None


def is_for(date: int, label: str, newest: str, needs: Sequence[str] = ()) -> bool:
    return part_of(label, newest, needs) == day_of(date) or is_daily(label, newest)


def turned(day: int, tests: list) -> list:
    """In the order in which they begin."""
    begin = len(tests) * (day // DAYS % PARTS) // PARTS
    return tests[begin:] + tests[:begin]


if __name__ == "__main__":
    names = [c.name for c in LISTED if day_of(today()) in c.days]
    print(f"day {day_of(today())} of {DAYS}: {' '.join(names)}")
