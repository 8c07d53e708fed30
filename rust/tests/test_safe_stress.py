# SPDX-License-Identifier: MIT
"""Random programs over the safe layer (rust/tests/support/src/bin/stress.rs): in `make test-all` a few, in
`make stress` with fresh seeds for a share of the time."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.cases import Case, folder_for
from testing.compilers import Compiler
from testing.crate import Shop
from testing.run import ROOT, run
from testing.steps import locked
from testing.stress import Stress, run_stress, share

RUST = ROOT / "rust"
HEAPS = ("s=4k", "s=32k", "")  # OCAMLRUNPARAM
BUILDS = {
    "release": (["--release"], {}, "release"),
    # The checked build of the C library under OCaml's debug runtime, which verifies its heap.
    "checked": (["--features", "ocaml-boxroot/checked"], {"OCAML_RUNTIME_VARIANT": "d"}, "debug"),
}


def _build(compiler: Compiler, build: str) -> Path:
    """The folder of the program."""
    words, more, profile = BUILDS[build]
    shop = Shop(compiler)
    folder = shop.folder / f"stress-{build}"
    with locked(shop.folder / f"stress-{build}.lock"):
        shop.cargo("build", "-p", "ocaml-boxroot-testing", "--bin", "stress", *words, cwd=RUST, more=more)
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        new, old = shop.target / profile / "stress", folder / "stress"
        if not old.exists() or old.stat().st_mtime_ns != new.stat().st_mtime_ns:
            shutil.copy2(new, folder / "new")
            (folder / "new").replace(old)
    return folder


def _case(compiler: Compiler, build: str, seed: int, steps: int) -> Case:
    chosen = random.Random(seed)
    heap = chosen.choice(HEAPS)
    settings = {"OCAMLRUNPARAM": f"{heap},V=1,v=0".strip(",") if build == "checked" else heap}
    options = {
        "--seed": seed,
        "--threads": chosen.randint(1, 4),
        "--domains": chosen.randint(0, 3) if compiler.major >= 5 else 0,
        "--steps": steps,
    }
    return Case(
        product="rust",
        group=f"{compiler.name}-{build}",
        name="random-safe",
        command=["./stress", *(str(word) for pair in options.items() for word in pair)],
        build=partial(_build, compiler, build),
        settings=settings,
        random=True,
    )


def _round(compiler: Compiler, build: str, seed: int) -> list[Case]:
    steps = 20_000 if build == "release" else 2000
    return [_case(compiler, build, seed + number, steps) for number in range(4)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    pairs = [(compiler, build) for compiler in matrix.ends() for build in BUILDS]
    if metafunc.function is test_random_programs_on_threads_and_domains:
        params = [
            pytest.param(c, b, id=f"{c.name}-{b}", marks=[pytest.mark.xdist_group(f"rust-{c.name}"), *skip])
            for c, b in pairs
        ]
        metafunc.parametrize(("compiler", "build"), params)
        return
    pairs = pairs if matrix.stressing(metafunc.config) and not why else []
    seconds = share(metafunc.config, "rust", len(pairs))
    metafunc.parametrize(
        "stress",
        [
            Stress("rust", f"{c.name}-{b}", seconds, matrix.seed() + 100_000 * number, partial(_round, c, b)).param()
            for number, (c, b) in enumerate(pairs)
        ],
    )


@pytest.mark.everything
def test_random_programs_on_threads_and_domains(compiler: Compiler, build: str) -> None:
    for number in range(4):
        case = _case(compiler, build, matrix.seed() + number, 1500)
        folder = folder_for(case)
        outcome = run(case.command, folder, folder / f"logs/{number}.log", case.limit, case.settings)
        assert outcome.passed, f"{outcome.tail(30)}\nagain: {outcome.again()}"


@pytest.mark.stress
def test_stress(stress: Stress) -> None:
    print(f"{stress.label}: {run_stress(stress)} runs")
