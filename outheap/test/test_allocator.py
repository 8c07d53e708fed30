# SPDX-License-Identifier: MIT
"""The allocator's and page table's own test programs, in each flavour."""

from __future__ import annotations

import pytest

from testing import allocator, matrix
from testing.cases import Case, check
from testing.flavours import environment


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases = []
    for flavour in matrix.outheap(metafunc.config):
        marks = [pytest.mark.random]
        if not allocator.available(flavour):
            marks.append(pytest.mark.skip(reason=f"no {allocator.compiler_of(flavour)}"))
        settings = environment(flavour, str(allocator.TESTS))
        for name in allocator.programs():
            command = [*flavour.runner, f"./{name}", "--seed", str(matrix.seed())]
            case = Case("outheap", flavour.name, name.replace("_test", "/all"), command, allocator.LIMIT, lambda f=flavour: allocator.build(f), settings,
                        random=True)
            cases.append(case.param(*marks))
    metafunc.parametrize("case", cases)


def test_allocator(case: Case) -> None:
    check(case)
