# SPDX-License-Identifier: MIT
"""How the library is compiled, linked and loaded: the checks of boxroot/test/build."""

from __future__ import annotations

from pathlib import Path

import pytest
from testing import matrix
from testing.cases import Case, check
from testing.compilers import Compiler
from testing.programs import words_of
from testing.run import BUILD, ROOT

CHECK = ROOT / "boxroot/test/build/check"
LIMIT = 240


def _folder(compiler: Compiler) -> Path:
    folder = BUILD / compiler.name / "build"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    listed = words_of(CHECK)
    chosen = metafunc.config.getoption("flavours")
    compilers = [] if chosen and "release" not in chosen.split() else matrix.compilers()
    metafunc.parametrize(
        "case",
        [
            Case(
                "boxroot",
                compiler.name,
                f"build/{name}",
                [str(CHECK), name, str(compiler.prefix)],
                LIMIT,
                lambda c=compiler: _folder(c),
                slow="slow" in words,
            ).param()
            for compiler in compilers
            for name, words in listed.items()
        ],
    )


def test_build(case: Case) -> None:
    check(case)
