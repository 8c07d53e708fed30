# SPDX-License-Identifier: MIT
"""Tests that fail once and pass once. A test that fails is run once more, but for random ones: what they find counts.
If it passes then, it is named at the end of the run; if it did the same in the run before, it has failed. What is known
of the run before lies in this user's cache, since every run of CI has a clone of its own."""

from __future__ import annotations

import os
from pathlib import Path


def file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("BOXROOT_CACHE") or Path(cache) / "boxroot") / "flaky"


def again(flaky: set[str], steady: set[str]) -> set[str]:
    """Notes what was flaky in this run, and forgets what was not. Result: what was flaky in the last two runs it was
    in."""
    known = file()
    before = set(known.read_text().splitlines()) if known.exists() else set()
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text("".join(f"{label}\n" for label in sorted((before - steady) | flaky)))
    return before & flaky
