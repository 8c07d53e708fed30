# SPDX-License-Identifier: MIT
"""What calls cost, in instructions, which are the same on a busy machine."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import pytest
from testing import matrix, programs
from testing.compilers import Compiler
from testing.flavours import BOXROOT
from testing.run import run

MARK = "u_mark"  # called before creations and after them
FEW, MANY = 20_000, 320_000
MOST = 60  # a dozen inline; a call in 128 has the rest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("compiler", matrix.compilers(), ids=lambda c: c.name)


def instructions_of_a_creation(folder: Path, live: int) -> float:
    """At each mark, what was counted since the last goes to a file of its own: part.1, part.2, …"""
    with tempfile.TemporaryDirectory() as parts:
        words = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={parts}/part"]
        settings = {"BOXROOT_TEST_LIVE": str(live)}
        outcome = run([*words, "./unit", "work-of-creations"], folder, folder / f"logs/cost-{live}.log", 120, settings)
        assert outcome.passed, f"{outcome.why}\n{outcome.tail()}"
        created = [int(number) for number in re.findall(r"^created (\d+)", outcome.text, re.M)]
        counted = [Path(parts, f"part.{2 * at + 2}").read_text() for at in range(len(created))]
    return sum(int(re.search(r"^totals: (\d+)", text, re.M)[1]) for text in counted) / sum(created)


@pytest.mark.boxroot
@pytest.mark.slow
def test_creation_costs_as_much_with_many_roots(compiler: Compiler) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not here")
    folder = programs.build(compiler, BOXROOT["release"])
    few, many = (instructions_of_a_creation(folder, live) for live in (FEW, MANY))
    print(f"{few:.1f} instructions with {FEW} roots, {many:.1f} with {MANY}")
    assert few < MOST and many < MOST
