# SPDX-License-Identifier: MIT
"""The allocator's and page table's own test programs, in each flavour."""

from __future__ import annotations

import pytest
from testing import allocator, matrix, steps
from testing.cases import Case, broken, check
from testing.flavours import environment


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    try:
        tests = allocator.tests()
    except steps.BuildFailed as error:
        metafunc.parametrize("case", [broken("outheap", "checked", error).param()])
        return
    cases: list[object] = []
    for flavour in matrix.outheap(metafunc.config):
        marks = [pytest.mark.random]
        if not allocator.available(flavour):
            marks.append(pytest.mark.skip(reason=f"no {allocator.compiler_of(flavour)}"))
        settings = environment(flavour, str(allocator.TESTS))
        for program, test in tests:
            command = [*flavour.runner, f"./{program}", "--only", test, "--seed", str(matrix.seed())]
            name = allocator.item(program, test)
            lacks = allocator.lacks(flavour, program, test)
            skip = [pytest.mark.skip(reason=f"{flavour.name} cannot")] if lacks else []
            case = Case(
                "outheap", flavour.name, name, command, allocator.LIMIT, lambda f=flavour: allocator.build(f), settings
            )
            cases.append(case.param(*marks, *skip))
    metafunc.parametrize("case", cases)


def test_allocator(case: Case) -> None:
    check(case)
