# SPDX-License-Identifier: MIT
"""Boxroot's own test programs: every test of their lists is an item, in each flavour."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch

import pytest
from testing import matrix, programs, steps, variants
from testing.boxroot import model_cases, program_cases
from testing.cases import Case, broken, check
from testing.flavours import BOXROOT


def _cases(config: pytest.Config) -> list[Case]:
    cases: list[Case] = []
    for number, (compiler, flavour) in enumerate(matrix.boxroot(config)):
        cases += model_cases(config, compiler, flavour, matrix.seed() + 10 * number)
        if matrix.stressing(config):
            continue
        try:
            found = programs.tests_of(compiler, flavour)
        except steps.BuildFailed as error:
            cases.append(broken("boxroot", f"{compiler.name}-{flavour.name}", error))
            continue
        cases += program_cases(config, compiler, flavour, found)
    return cases


THREADS = {
    "helper": "helper=on",
    "helper-and-compaction": variants.THREADS,
}


def _with_threads(cases: list[Case]) -> list[Case]:
    return [
        replace(case, name=f"{case.name}-with-{name}", settings={**case.settings, "OUTHEAP": setting})
        for case in cases
        for name, setting in THREADS.items()
        # These bound the number of pools: 85 are in use where cycles all end with a compaction, 28 where they do not.
        if not (name == "helper-and-compaction" and "/domains-replace" in case.name)
    ]


def _on_variant(config: pytest.Config) -> list[Case]:
    """Boxroot's pools are followed by Outheap's marker. Not the failures of mmap, which is not where its memory comes
    from then."""
    if config.getoption("flavours") and not {"release", "tiny"} & set(config.getoption("flavours").split()):
        return []
    cases = []
    names = ("release", "tiny") if config.getoption("everything") else ("release",)
    for compiler in matrix.known_to_outheap():
        linked = variants.linked_with(compiler)
        for name in names:
            flavour = BOXROOT[name]
            model = model_cases(config, linked, flavour, matrix.seed() + 1000)
            cases += [replace(case, slow=case.name == "model/alone") for case in model]
            try:
                found = programs.tests_of(compiler, flavour)
            except steps.BuildFailed:
                continue  # the same failure as of the stock runtime
            some = [
                (program, test, words)
                for program, test, words in found
                if program in ("unit", "single", "embed")
                or (program in ("regress", "weak", "ephemeral") and not test.startswith("n"))
            ]
            here = program_cases(config, linked, flavour, some)
            cases += here
            if compiler.version >= "5.4":
                cases += _with_threads([*model, *(here if config.getoption("everything") else [])])
    return cases


# These tests fail under the check because it moves values, or because it collects more often.
NOT_CHECKED = {
    "unit/deleted-beside-the-scan": "keeps values in a variable of C between two collections, on purpose",
    "unit/statistics": "counts slow creations",
    "regress/finaliser-deletes-*": "its finalisers are to run in the scan, and have run in earlier collections",
    "regress/infix-*": "the same",
    "regress/churn-*": "limits resident memory, to which what was left belongs",
    "regress/give-back-*": "the same",
    "weak/memory": "the same",
    "frames/ending-threads": "the same",
    "storage/finalisers": "counts finalisers, and most of them have run before",
    "regress/domains-replace*": "limits the number of pools, which more collections raise",
    "regress/no-memory-*": "mmap fails, for the check as well",
    "regress/pages-*": "about the size of pages: minutes, without values of interest",
    "frames/abandoned": "millions of locals: minutes",
    "frames/full": "the same",
    "frames/interrupted": "the same",
}


def _on_check(config: pytest.Config) -> list[Case]:
    """Under the variant that finds stale values (outheap-check): none is seen."""
    if config.getoption("flavours") and "release" not in config.getoption("flavours").split():
        return []
    cases = []
    for compiler in matrix.known_to_outheap(brief=True):
        if compiler.release < (5, 4):
            continue
        linked, flavour = variants.linked_with(compiler, "check"), BOXROOT["release"]
        try:
            found = programs.tests_of(compiler, flavour)
        except steps.BuildFailed:
            continue  # the same failure as of the stock runtime
        here = model_cases(config, linked, replace(flavour, steps=1000), matrix.seed() + 2000)
        here += program_cases(config, linked, flavour, found)
        settings = {"OUTHEAP": f"check=move:10,check.seed={matrix.seed()}", "BOXROOT_TEST_SCALE": "5"}
        cases += [
            replace(case, slow=True, settings={**case.settings, **settings})
            for case in here
            if not any(fnmatch(case.name, pattern) for pattern in NOT_CHECKED)
        ]
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases = _cases(metafunc.config)
    if not matrix.stressing(metafunc.config):
        cases += _on_variant(metafunc.config) + _on_check(metafunc.config)
    metafunc.parametrize("case", [c.param() for c in cases])


def test_program(case: Case) -> None:
    outcome = check(case)
    assert "outheap-check: a" not in outcome.text, outcome.tail()
