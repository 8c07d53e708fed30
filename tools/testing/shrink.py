# SPDX-License-Identifier: MIT
"""Looks for a smaller command that fails like a given one: fewer domains, threads, lives and steps, with the same
seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from testing.run import Outcome

FEWER = ("--lives", "--domains", "--threads")  # to 1 if possible, else one less
SHORTER = ("--steps", "--seconds")  # to a tenth if possible, else by half, by a quarter
TRIES = 4  # a failure may need several runs to show itself


@dataclass
class Shrunk:
    outcome: Outcome
    runs: int
    seconds: float


def smaller(command: Sequence[str]) -> Iterator[list[str]]:
    """Simpler commands, the boldest first."""
    words = list(command)
    for option in (*FEWER, *SHORTER):
        if option not in words:
            continue
        at = words.index(option) + 1
        now = int(float(words[at]))
        wanted = (1, now - 1) if option in FEWER else (now // 10, now // 2, now * 3 // 4)
        for value in dict.fromkeys(wanted):
            if 1 <= value < now:
                yield [*words[:at], str(value), *words[at + 1 :]]
    for option in ("--idle-main", "--recycle"):
        if option in words:
            yield [word for word in words if word != option]


def kept_log(outcome: Outcome, number: int) -> Outcome:
    """The next run would overwrite its log."""
    return replace(outcome, log=outcome.log.rename(outcome.log.with_suffix(f".{number}.log")))


def shrink(first: Outcome, again: Callable[[list[str], float], Outcome], seconds: float) -> Shrunk:
    """`again(command, limit)` runs a command. Each candidate has several tries; the first failure of the same sort is
    taken."""
    best, runs, start = first, 0, time.monotonic()

    def left() -> float:
        return seconds - (time.monotonic() - start)

    progress = True
    while progress and left() > 0:
        progress = False
        for candidate in smaller(best.command):
            for _ in range(TRIES):
                limit = min(first.limit, max(2.0, best.seconds * 2 + 1)) if not first.late else first.limit
                if left() < min(limit, 2.0):
                    break
                runs += 1
                outcome = again(candidate, min(limit, left()))
                if not outcome.passed and not outcome.skipped and outcome.late == first.late:
                    outcome = kept_log(outcome, runs)
                    best, progress = outcome, True
                    break
            if progress or left() <= 0:
                break
    return Shrunk(best, runs, time.monotonic() - start)
