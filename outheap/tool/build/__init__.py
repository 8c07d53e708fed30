# SPDX-License-Identifier: MIT
"""Builds OCaml's runtime with Outheap's allocator and page table, as a variant for a stock compiler: outheap-build."""

from __future__ import annotations

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]  # outheap/ of a clone, or share/outheap where it is installed


class Stop(Exception):
    """Why it cannot go on, and the exit code: 1 (a step failed), 2 (usage), 3 (the compiler or the sources are not
    supported), 4 (the result failed its test)."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.code, self.lines = code, lines


def say(text: str) -> None:
    print(f"outheap-build: {text}", file=sys.stderr, flush=True)
