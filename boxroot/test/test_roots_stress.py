# SPDX-License-Identifier: MIT
"""`make stress`: Boxroot's random tester and its tests of ending domains."""

from __future__ import annotations

from functools import partial

import pytest
from testing import boxroot, matrix
from testing.cases import Case
from testing.compilers import Compiler
from testing.flavours import Flavour
from testing.stress import Stress, run_stress, share

ENDING = ("churn-idle-main", "churn-used-main", "churn-together", "domain-exit-mid-cycle", "domain-exit-last-words")
STEPS, SLOW_STEPS = 6000, 2500


def _round(config: pytest.Config, compiler: Compiler, flavour: Flavour, seed: int) -> list[Case]:
    slow = flavour.sanitizer or flavour.name == "checked-tiny"
    commands = boxroot.model_commands(compiler, flavour, seed, SLOW_STEPS if slow else STEPS)
    cases = [
        boxroot.case_of(config, compiler, flavour, name, command, random=True) for name, command in commands.items()
    ]
    if compiler.major >= 5 and not flavour.model_only:
        cases += [boxroot.case_of(config, compiler, flavour, f"regress/{test}", ["./regress", test]) for test in ENDING]
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    pairs = matrix.boxroot(config) if matrix.stressing(config) else []
    seconds = share(config, "boxroot", len(pairs))
    metafunc.parametrize(
        "stress",
        [
            Stress(
                "boxroot",
                f"{compiler.name}-{flavour.name}",
                seconds,
                matrix.seed() + 100_000 * number,
                partial(_round, config, compiler, flavour),
            ).param()
            for number, (compiler, flavour) in enumerate(pairs)
        ],
    )


@pytest.mark.stress
def test_stress(stress: Stress) -> None:
    print(f"{stress.label}: {run_stress(stress)} runs")
