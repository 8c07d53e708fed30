# SPDX-License-Identifier: MIT
"""Runs a program with the stock runtime and with Outheap, in turn, and compares them: outheap-compare."""

from __future__ import annotations

import sys
import time
from pathlib import Path

WAYS = ("stock", "variant")  # with --settings the first is the variant with other settings


def names_of(settings: str) -> dict[str, str]:
    """What the two ways are called."""
    return dict(zip(WAYS, ("first", "second") if settings else WAYS))


HOME = Path(__file__).resolve().parents[2]  # outheap/ of a clone, or share/outheap where it is installed
IN_CLONE = (HOME.parent / "dune-project").is_file()


class Wrong(Exception):
    """What went wrong, and the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def say(text: str) -> None:
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr, flush=True)


class Progress:
    """One line on a terminal that is written over; elsewhere a line now and then."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.last = time.monotonic()

    def show(self, text: str, *, at_once: bool = False) -> None:
        if self.terminal:
            print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)
        elif at_once or time.monotonic() - self.last > 10:
            say(text)
            self.last = time.monotonic()

    def end(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


progress = Progress()
