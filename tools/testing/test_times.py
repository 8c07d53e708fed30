# SPDX-License-Identifier: MIT
"""What documents say of times is what was measured last (`tools/fresh --record`)."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest

from testing.run import ROOT

RUNS = tomllib.loads(Path(__file__).with_name("times.toml").read_text())["run"]
TEST, NOTHING, CI = ("test", "compilers"), ("test", "nothing"), ("ci", "nothing")
# A file, a sentence with minutes in it, and which runs they are of: target, and from what.
SAID = (
    ("Makefile", r"what one compiler can test: (\d+) minutes, (\d+) from nothing", (TEST, NOTHING)),
    ("CONTRIBUTING.md", r"dune packages: (\d+) minutes, (\d+) from\s+nothing", (TEST, NOTHING)),
    ("CONTRIBUTING.md", r"`\.ci/run`, which takes (\d+) minutes from\s+nothing", (CI,)),
    (".ci/run", r"with two compilers and dune to build: (\d+) minutes on two cores", (CI,)),
    ("docs/internals/testing.md", r"CI takes (\d+) minutes from nothing", (CI,)),
)
MOST = {TEST: 8, NOTHING: 12, CI: 35}


def last(target: str, begun: str) -> float:
    return [run["minutes"] for run in RUNS if (run["target"], run["from"]) == (target, begun)][-1]


@pytest.mark.parametrize(("file", "sentence", "runs"), SAID, ids=[f"{s[0]}-{s[2][0][0]}" for s in SAID])
def test_times_in_texts(file: str, sentence: str, runs: tuple[tuple[str, str], ...]) -> None:
    """Not less than what was measured, nor much more."""
    found = re.search(sentence, (ROOT / file).read_text())
    assert found, f"{file} does not say it: {sentence}"
    for minutes, run in zip(map(int, found.groups()), runs, strict=True):
        measured = last(*run)
        assert math.floor(measured) <= minutes <= max(measured * 1.5, measured + 2), (minutes, run, measured)


@pytest.mark.parametrize("run", MOST)
def test_runs_are_short(run: tuple[str, str]) -> None:
    assert last(*run) <= MOST[run]
