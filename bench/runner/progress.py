# SPDX-License-Identifier: MIT
"""How far a run is: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

SECONDS = float(os.environ.get("BOXROOT_PROGRESS", "20"))  # from line to line
WEIGHT = 0.5  # seconds that must be done before the rest is guessed


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Steps:
    """`what`: what is being done, as `building`. A step has a name and a weight: seconds, or 1. Lines come from a
    thread, so that a step that takes minutes does not keep them back: it wakes once in twenty seconds, also while
    something is measured."""

    def __init__(
        self, what: str, total: int, weight: float | None = None, quiet: bool = False, out: TextIO | None = None
    ):
        self.what, self.total, self.weight = what, total, float(total) if weight is None else weight
        self.count, self.done, self.name, self.out = 0, 0.0, "", out or sys.stderr
        self.begin = self.since = time.monotonic()
        self.ended, self.thread, self.bar = threading.Event(), None, None
        if quiet:
            return
        console = Console(file=self.out)
        if console.is_terminal and not console.is_dumb_terminal:
            columns = BarColumn(30), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
            self.bar = Progress(*columns, console=console, transient=True)
            self.bar.add_task("", total=self.weight)
        else:
            self.thread = threading.Thread(target=self._lines, daemon=True)

    def plan(self, total: int, weight: float) -> None:
        """So many steps and so much weight remain."""
        self.total, self.weight = self.count + total, self.done + weight
        if self.bar:
            self.bar.update(self.bar.task_ids[0], total=self.weight)

    def start(self, name: str) -> None:
        self.name, self.since, self.count = name, time.monotonic(), self.count + 1
        if self.bar:
            self.bar.update(self.bar.task_ids[0], description=f"{self.what}: {name}")

    def advance(self, weight: float = 1.0) -> None:
        self.done += weight
        if self.bar:
            self.bar.advance(self.bar.task_ids[0], weight)

    def line(self) -> str:
        now = time.monotonic()
        gone, spent = now - self.begin, now - self.since
        left = ""
        if self.done > 0 and gone > WEIGHT:
            left = f", about {clock(gone / self.done * max(0.0, self.weight - self.done))} left"
        of = f"{self.count} of {max(self.total, self.count)}" if self.count else f"{self.total} to do"
        return f"{self.what}, {of}: {self.name} ({clock(spent)}); {clock(gone)} gone{left}"

    def _lines(self) -> None:
        while not self.ended.wait(SECONDS):
            try:
                print(self.line(), file=self.out, flush=True)
            except (OSError, ValueError):  # who read this has gone
                return

    def __enter__(self) -> Steps:
        if self.bar:
            self.bar.start()
        if self.thread:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.thread:
            self.thread.join()
        if self.bar:
            self.bar.stop()
