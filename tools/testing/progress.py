# SPDX-License-Identifier: MIT
"""How far a run of tests is, where there is no terminal: a line now and then, beside pytest's dots."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import TextIO

from testing.cases import label_of
from testing.spent import Spent, work

SECONDS = float(os.environ.get("BOXROOT_PROGRESS", "30"))  # from line to line


@dataclass
class Progress:
    total: int = 0  # 0: not known yet
    done: int = 0
    failed: int = 0
    running: dict[str, float] = field(default_factory=dict)  # since when
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self, out: TextIO, used: Spent) -> None:
        self._thread = threading.Thread(target=self._lines, args=(out, used), daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def start(self, nodeid: str) -> None:
        self.running[nodeid] = time.monotonic()

    def finish(self, nodeid: str) -> None:
        if self.running.pop(nodeid, None) is not None:
            self.done += 1

    def line(self) -> str:
        if not self.total:
            return "tests are being collected"
        running = self.running.copy()  # at once: another thread writes to it
        now, longest = time.monotonic(), sorted(running.items(), key=lambda item: item[1])[:2]
        shown = ", ".join(f"{label_of(nodeid)} ({now - since:.0f} s)" for nodeid, since in longest)
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} tests have run{failed}; running: {shown or 'none'}"

    def _lines(self, out: TextIO, used: Spent) -> None:
        while not self._ended.wait(SECONDS):
            used.pieces.append(work())
            try:
                print(f"\n{self.line()}", file=out, flush=True)
            except (OSError, ValueError):  # who read this has gone
                return
