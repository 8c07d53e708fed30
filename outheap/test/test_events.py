# SPDX-License-Identifier: MIT
"""Outheap's statistics as events of runtime_events (outheap/lib/events)."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.cases import Case, check
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, run

HOME = ROOT / "outheap"
PARTS = ("lib/outheap", "lib/events", "test/events", "include")
STOCK = "stock"


@cache
def program(compiler: Compiler, flavour: str) -> Path:
    """The folder of the test program; `stock`: linked with the runtime of the compiler."""
    library = None if flavour == STOCK else variants.library(compiler, flavour)
    folder = BUILD / (compiler.name if library is None else f"{compiler.name}+outheap") / f"events-{flavour}"
    files = [f for part in PARTS for f in (HOME / part).rglob("*") if f.is_file()]

    def build() -> None:
        for file in files:
            shutil.copy(file, folder)
        linked = ["-I", library, "-runtime-variant", variants.SUFFIX[flavour]] if library else []
        native = not flavour.startswith("bytecode")
        start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
        steps.command([compiler.ocamlopt, "-ccopt", f"-O2 -Wall -I {HOME}/include", "-c", "outheap_stubs.c"], folder)
        events = [
            "-I",
            "+unix",
            "unix.cmxa" if native else "unix.cma",
            "-I",
            "+runtime_events",
            "runtime_events.cmxa" if native else "runtime_events.cma",
        ]
        modules = ["outheap.mli", "outheap.ml", "outheap_events.mli", "outheap_events.ml", "events.ml"]
        steps.command([*start, "-g", *linked, *events, "outheap_stubs.o", *modules, "-o", "events"], folder)

    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    return steps.step(folder, files, words, build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if c.major == 5]
    if not matrix.chosen_flavours(metafunc.config):
        pairs += [(c, STOCK) for c in matrix.ends() if c in matrix.known_to_outheap() and c.major == 5]
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize(("compiler", "flavour"), pairs, ids=[f"{c.name}-{f}" for c, f in pairs])
        return
    cases = [
        Case(
            "outheap",
            f"{c.name}-{f}",
            "events",
            ["./events", "false" if f == STOCK else "true"],
            60,
            lambda c=c, f=f: program(c, f),
            {"OCAMLRUNPARAM": "v=0,V=1" if "debug" in f else "b"},
        )
        for c, f in pairs
    ]
    metafunc.parametrize("case", [case.param() for case in cases])


def test_events(case: Case) -> None:
    check(case)


def test_what_the_helper_did(compiler: Compiler, flavour: str) -> None:
    """Each stretch of its work is told once, and their sums are what the statistics say at exit."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": "helper=on,stats=exit", "OCAMLRUNPARAM": "v=0,V=1" if "debug" in flavour else "b"}
    outcome = run(["./events", "helper"], folder, folder / "helper.log", 120, settings)
    assert outcome.passed, outcome.tail()
    found = {name: int(n) for name, n in re.findall(r"^(?:outheap: )?([a-z.]+) (\d+)$", outcome.text, re.MULTILINE)}
    assert found["spans"] == found.get("helper.spans", 0), outcome.text
    assert found["marked"] == found.get("helper.words", 0), outcome.text
    assert found["swept"] == found.get("helper.pools", 0), outcome.text
    # Time by the clock is no less than that of a processor, which is counted in parts.
    assert found["microseconds"] * 1.1 + 1000 >= found.get("helper.microseconds", 0), outcome.text
    if flavour != STOCK and compiler.version.startswith(("5.4", "5.5")):
        assert found["marked"] > 0 and found["swept"] > 0, outcome.text
