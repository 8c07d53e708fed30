# SPDX-License-Identifier: MIT
"""How far a run is: a line now and then."""

from __future__ import annotations

import os
import sys
import time

SECONDS = float(os.environ.get("BOXROOT_PROGRESS", "30"))  # from line to line, at least


class Steps:
    """`what`: what is being done, as `building`."""

    def __init__(self, what: str, total: int):
        self.what, self.total, self.count, self.begin, self.told = what, total, 0, time.monotonic(), -SECONDS

    def start(self, name: str) -> None:
        self.count += 1
        gone = time.monotonic() - self.begin
        if gone - self.told < SECONDS:
            return
        self.told = gone
        left = gone / (self.count - 1) * (self.total - self.count + 1) if self.count > 1 else 0
        rest = f", about {clock(left)} left" if left else ""
        line = f"{self.what}, {self.count} of {self.total}: {name}; {clock(gone)} gone{rest}"
        print(line, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
