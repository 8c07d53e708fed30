# SPDX-License-Identifier: MIT
"""Random tests with fresh seeds, again and again, until a share of the time is over. What fails is kept, and the run
goes on."""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from testing import steps
from testing.cases import Case, folder_for
from testing.keep import keep
from testing.run import Outcome, run, shown
from testing.shrink import shrink

SHARES = {"boxroot": 0.42, "allocator": 0.10, "torture": 0.16, "helper": 0.14, "rust": 0.18}  # of the time
CORE = 4_000_000_000
SHOWN = 5  # failures at most in the message of one item


@dataclass(frozen=True)
class Stress:
    """One compiler and flavour: `cases(seed)` are the runs of a round."""

    product: str
    group: str
    seconds: float
    seed: int
    cases: Callable[[int], Sequence[Case]]

    @property
    def label(self) -> str:
        return f"{self.product}[{self.group}] stress"

    def param(self) -> object:
        return pytest.param(self, id=f"{self.group} stress")


def share(config: pytest.Config, part: str, items: int) -> float:
    """Seconds for each item of a part."""
    return config.getoption("stress") * SHARES[part] * steps.JOBS / max(items, 1)


def _run_one(case: Case) -> str:
    """Runs a case in a folder of its own, where a core file is its own; what is to be said, or an empty string."""
    folder = folder_for(case)
    scratch = Path(tempfile.mkdtemp(prefix="run.", dir=folder))

    def again(words: Sequence[str], limit: float) -> Outcome:
        here = [str(folder / word[2:]) if word.startswith("./") else word for word in words]
        for name in {word for word in words if word.startswith("./")}:
            (scratch / name).unlink(missing_ok=True)
            (scratch / name).symlink_to(folder / name)
        return run(here, scratch, scratch / "log", limit, case.settings)

    limits = resource.getrlimit(resource.RLIMIT_CORE)
    tsan = "tsan" in case.group  # its shadow memory makes core files of terabytes
    resource.setrlimit(
        resource.RLIMIT_CORE,
        (0 if tsan else min(CORE, limits[1]) if limits[1] != resource.RLIM_INFINITY else CORE, limits[1]),
    )
    try:
        outcome = again(case.command, case.limit)
        if outcome.passed or outcome.skipped:
            return ""
        said = replace(outcome, folder=folder)
        kept = keep(case.label, outcome, [f"in the folder of the program: {said.again()}"])
        if case.random:
            found = shrink(outcome, again, 60)
            if found.outcome is not outcome:
                (kept / "smallest").write_text(replace(found.outcome, folder=folder).again() + "\n")
                said = replace(found.outcome, folder=folder)
        return f"{case.label}: {outcome.why}\nagain: {said.again()}\nkept: {shown(kept)}"
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)
        shutil.rmtree(scratch, ignore_errors=True)


def run_stress(stress: Stress) -> int:
    """How many runs passed."""
    end, seed, passed, failures = time.monotonic() + stress.seconds, stress.seed, 0, []
    order = random.Random(seed)
    while time.monotonic() < end:
        cases = list(stress.cases(seed))
        order.shuffle(cases)
        for case in cases:
            if time.monotonic() >= end:
                break
            failure = _run_one(case)
            passed += not failure
            failures += [failure] if failure else []
        seed += 10
    if failures:
        pytest.fail(
            f"{len(failures)} of {passed + len(failures)} runs failed\n" + "\n".join(failures[:SHOWN]), pytrace=False
        )
    return passed
