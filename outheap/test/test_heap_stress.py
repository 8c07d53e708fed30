# SPDX-License-Identifier: MIT
"""`make stress`: Outheap's allocator, foreign pointers everywhere, and then OCaml's own testsuite on the variant."""

from __future__ import annotations

from functools import partial

import pytest
from testing import allocator, matrix, steps, torture
from testing.cases import Case, check
from testing.compilers import Compiler
from testing.flavours import Flavour, environment
from testing.run import BUILD, OUT, ROOT
from testing.stress import Stress, run_stress, share
from testing.torture import Runtime

TESTSUITE_LIMIT = 4 * 3600


def _allocator_round(flavour: Flavour, seed: int) -> list[Case]:
    """Each program with all its tests in a process; one by one where the flavour does not have all."""
    settings = environment(flavour, str(allocator.TESTS))

    def case(name: str, program: str, *words: str) -> Case:
        command = [*flavour.runner, f"./{program}", *words, "--seed", str(seed)]
        build = lambda: allocator.build(flavour)
        return Case("outheap", flavour.name, name, command, allocator.LIMIT, build, settings)

    if not (flavour.without or flavour.programs):
        return [case(program, program) for program in allocator.programs()]
    return [
        case(allocator.item(program, test), program, "--only", test)
        for program, test in allocator.tests()
        if not allocator.lacks(flavour, program, test)
    ]


def _torture_round(runtime: Runtime, seed: int) -> list[Case]:
    return torture.random_cases(runtime, seed, 20)


def _stresses(config: pytest.Config) -> list[Stress]:
    flavours = [f for f in matrix.outheap(config) if not f.emulator and allocator.available(f)]
    seconds = share(config, "allocator", len(flavours))
    found = [
        Stress("outheap", f.name, seconds, matrix.seed() + 1000 * n, partial(_allocator_round, f))
        for n, f in enumerate(flavours)
    ]
    runtimes = [
        Runtime(compiler, flavour) for compiler, flavour in matrix.variant(config) if flavour in ("release", "debug")
    ]
    seconds = share(config, "torture", len(runtimes))
    return found + [
        Stress("outheap", r.name, seconds, matrix.seed() + 1000 * n, partial(_torture_round, r))
        for n, r in enumerate(runtimes)
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    if "stress" in metafunc.fixturenames:
        metafunc.parametrize("stress", [s.param() for s in _stresses(config)] if matrix.stressing(config) else [])
    else:
        metafunc.parametrize(
            "compiler",
            [
                pytest.param(c, id=c.name, marks=pytest.mark.xdist_group("testsuite"))
                for c in matrix.known_to_outheap()
                if c.major >= 5
            ],
        )


@pytest.mark.stress
def test_stress(stress: Stress) -> None:
    print(f"{stress.label}: {run_stress(stress)} runs")


@pytest.mark.stress
@pytest.mark.timeout(TESTSUITE_LIMIT + 600)
def test_suite_of_ocaml(compiler: Compiler) -> None:
    """The same results as stock's, test by test; about 20 minutes, and as long again for the stock runtime the first
    time."""
    folder = BUILD / f"{compiler.name}+outheap/testsuite"
    folder.mkdir(parents=True, exist_ok=True)
    library = OUT / f"outheap/{compiler.version}"
    steps.command([ROOT / "outheap/tool/outheap-build", "--ocaml", compiler.prefix, "--output", library], folder)
    command = [
        str(ROOT / "outheap/test/testsuite"),
        "--jobs",
        str(steps.JOBS),
        "--variant",
        str(library),
        compiler.version,
    ]
    check(Case("outheap", compiler.name, "testsuite", command, TESTSUITE_LIMIT, lambda: folder))
