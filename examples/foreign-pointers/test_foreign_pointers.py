# SPDX-License-Identifier: MIT
"""Libraries that store foreign pointers in values, in the versions that did so: on the variant they pass their own
tests, and the collector leaves alone what the pointers lead to; stock OCaml 5 does not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from testing import matrix, sources, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, Outcome, run

HOME = ROOT / "examples/foreign-pointers"
pytestmark = [pytest.mark.slow, pytest.mark.everything]  # minutes, and sources from Debian's archive
TESTS = {"llvm": 15, "ssl": 2}
# The first is followed in OpenSSL's table by one of 128 bits; before the second lies one of 256.
CIPHERS = ("ECDHE-RSA-AES256-GCM-SHA384", "AES128-SHA")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    params = [
        pytest.param(c, id=c.name, marks=pytest.mark.xdist_group(f"foreign-pointers-{c.name}")) for c in matrix.ends()
    ]
    metafunc.parametrize("compiler", params)


def built(compiler: Compiler, *options: str) -> Path:
    """The folder of the programs."""
    folders = [variants.library(compiler, flavour) for flavour in ("release", "bytecode")]
    log = BUILD / compiler.name / "foreign-pointers.log"
    return sources.built([HOME / "build", *options, compiler.prefix, *folders], log)


def modules(folder: Path, runtime: str) -> Outcome:
    return run([folder / runtime / "modules.exe", "5000"], folder, folder / f"{runtime}-modules.log", 120)


def ciphers(folder: Path, runtime: str) -> Outcome:
    words = [folder / runtime / "ciphers.exe", folder / "certificate.pem", folder / "key.pem", *CIPHERS]
    return run(words, folder, folder / f"{runtime}-ciphers.log", 120)


def test_own_tests_pass(compiler: Compiler) -> None:
    lines = [line.split() for line in (built(compiler, "--test") / "own-tests").read_text().splitlines()]
    results = {(library, runtime): (int(passed), int(failed)) for library, runtime, passed, failed in lines}
    for library, tests in TESTS.items():
        assert results[library, "outheap"] == (tests, 0)
    if compiler.major >= 5:
        assert results["llvm", "stock"][1] > 0
    else:
        assert results["llvm", "stock"] == (TESTS["llvm"], 0)


def test_what_the_pointers_lead_to_stays(compiler: Compiler) -> None:
    folder = built(compiler)
    for program in (modules, ciphers):
        outcome = program(folder, "outheap")
        assert outcome.passed, outcome.tail()
        assert outcome.text.splitlines()[-1] == "whole"


def test_stock_follows_them(compiler: Compiler) -> None:
    folder = built(compiler)
    for program in (modules, ciphers):
        outcome = program(folder, "stock")
        if compiler.major < 5:
            assert outcome.passed, outcome.tail()
            continue
        assert not outcome.passed
        if program is ciphers:
            assert "bits are" in outcome.text
        else:
            assert outcome.code in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT)
