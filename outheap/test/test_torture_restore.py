# SPDX-License-Identifier: MIT
"""Does the torture test notice when one unit of the variant is missing? Stock's is put back, one at a time (with
--full: long)."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, torture, variants
from testing.cases import attempt
from testing.compilers import Compiler
from testing.programs import list_of
from testing.run import BUILD
from testing.torture import Runtime

LIBRARY = "libasmrun_outheap.a"
# Loading of plug-ins is left to OCaml's own testsuite, the trace of parsers to test_foreign.py,
# memory that goes back at Gc.full_major to test_variant.py.
ELSEWHERE = ("dynlink_nat.n.o", "gc_ctrl.n.o", "parsing.n.o")


def _unpack(archive: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps.command(["ar", "x", archive], folder)
    return folder


def _code(unit: Path) -> str:
    """Code, not debugging data, tells whether a unit differs."""
    bare = unit.with_suffix(".bare")
    subprocess.run(["objcopy", "--strip-debug", unit, bare], check=True)
    said = subprocess.run(
        ["objdump", "-dr", "--no-show-raw-insn", bare], capture_output=True, text=True, check=True
    ).stdout
    return "\n".join(said.splitlines()[3:])


@cache
def units(compiler: Compiler) -> dict[str, Path]:
    """Stock's units, where the variant's differ."""
    folder = BUILD / f"{compiler.name}+outheap/restore"
    stock = _unpack(compiler.where / "libasmrun.a", folder / "stock")
    variant = _unpack(variants.library(compiler, "release") / LIBRARY, folder / "variant")
    both = [f for f in sorted(stock.glob("*.o")) if (variant / f.name).exists() and f.name not in ELSEWHERE]
    return {f.name: f for f in both if _code(f) != _code(variant / f.name)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    full = metafunc.config.getoption("full") and not metafunc.config.getoption("collectonly")
    metafunc.parametrize("compiler", matrix.known_to_outheap() if full else [], ids=lambda c: c.name)


@pytest.mark.everything
def test_every_unit_is_missed(compiler: Compiler, subtests: pytest.Subtests) -> None:
    for name, unit in units(compiler).items():
        with subtests.test(unit=name):
            assert _missed(compiler, name, unit), f"nothing misses {name}"


def _missed(compiler: Compiler, name: str, unit: Path) -> str:
    """What found that the unit is stock's."""
    library = BUILD / f"{compiler.name}+outheap/restore/library-{re.sub('[^a-z0-9_]', '-', name)}"
    shutil.rmtree(library, ignore_errors=True)
    library.mkdir(parents=True)
    shutil.copy(variants.library(compiler, "release") / LIBRARY, library)
    steps.command(["ar", "r", LIBRARY, unit], library)
    runtime = Runtime(compiler, "release", library)
    try:
        folder = torture.build(runtime, f"restore-{library.name}")
    except steps.BuildFailed:
        return "it does not link"
    for scenario in list_of(folder / "torture"):
        case = torture.case_of(
            runtime, scenario, ["./torture", "--scenario", f"{scenario}:unreadable"], 60, folder=folder
        )
        if not attempt(case, case.command, case.limit, f"restore-{scenario}").passed:
            return scenario
    for case in torture.random_cases(runtime, matrix.seed(), 5, folder):
        if not attempt(case, case.command, case.limit, "restore-random").passed:
            return case.name
    return ""
