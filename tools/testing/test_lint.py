# SPDX-License-Identifier: MIT
"""What tools/lint says of the sources of the whole repository."""

from __future__ import annotations

import pytest

from testing import matrix
from testing.cases import Case, check
from testing.run import BUILD, ROOT

LIMIT = 1800  # cargo and the packages for Python may be fetched


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    compiler = matrix.compilers()[0]
    (BUILD / "lint").mkdir(parents=True, exist_ok=True)
    settings = {"OCAML": str(compiler.prefix)}
    command = [str(ROOT / "tools/lint")]
    case = Case("lint", compiler.name, "all", command, LIMIT, lambda: BUILD / "lint", settings, slow=True)
    metafunc.parametrize("case", [case.param(pytest.mark.xdist_group("lint"))])


@pytest.mark.lint
def test_lint(case: Case) -> None:
    check(case)
