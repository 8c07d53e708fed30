# SPDX-License-Identifier: MIT
"""Foreign pointers everywhere: random runs, scenarios, addresses that are used again, and whether the test notices
missing units."""

from __future__ import annotations

import pytest
from testing import matrix, steps, torture
from testing.cases import Case, attempt, broken, check
from testing.programs import list_of
from testing.torture import Runtime


def _runtimes(config: pytest.Config) -> list[Runtime]:
    return [
        Runtime(compiler, flavour) for compiler, flavour in matrix.variant(config) if flavour in ("release", "debug")
    ]


def _cases(config: pytest.Config) -> list[object]:
    found = []
    everything = config.getoption("everything")
    for number, runtime in enumerate(_runtimes(config)):
        cases = torture.random_cases(runtime, matrix.seed() + 10 * number, 5 if everything else 1)
        recycle = torture.recycle_cases(runtime)
        if runtime.flavour == "release" or config.getoption("full"):
            cases += recycle
        elif everything:  # a minute each with the debug runtime
            cases += [case for case in recycle if case.name in ("torture/recycle-mmap", "torture/recycle-met-beside")]
        if everything and runtime.flavour == "release":
            try:
                cases += torture.scenario_cases(runtime)
            except steps.BuildFailed as error:
                cases.append(broken("outheap", runtime.name, error))
        found += [case.param() for case in cases]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", _cases(metafunc.config))
    elif "runtime" in metafunc.fixturenames:
        metafunc.parametrize("runtime", _runtimes(metafunc.config), ids=lambda r: r.name)
    elif "stock" in metafunc.fixturenames:
        metafunc.parametrize(
            "stock", [Runtime(c, "stock") for c in matrix.known_to_outheap() if c.major >= 5], ids=lambda r: r.name
        )


def test_torture(case: Case) -> None:
    check(case)


def test_weak_declaration_finds_the_variant(runtime: Runtime) -> None:
    """The stubs declare outheap_classify weak, as programs may that are also linked with the stock runtime."""
    folder = torture.build(runtime)
    check(
        Case(
            "outheap",
            runtime.name,
            "torture/has-variant",
            ["./torture", "--has-variant"],
            60,
            lambda: folder,
            runtime.settings(),
        )
    )


@pytest.mark.everything
def test_stock_runtime_fails(stock: Runtime) -> None:
    """The control: on the stock runtime most scenarios with memory that cannot be read must fail."""
    folder = torture.build(stock)
    survivors, failed = [], 0
    for scenario in list_of(folder / "torture"):
        case = torture.case_of(stock, f"control-{scenario}", ["./torture", "--scenario", f"{scenario}:unreadable"], 60)
        if attempt(case, case.command, case.limit, f"control-{scenario}").passed:
            survivors.append(scenario)
        else:
            failed += 1
    assert failed > len(survivors), f"only {failed} scenarios fail; these do not: {' '.join(survivors)}"
