# SPDX-License-Identifier: MIT
"""Outheap's statistics as events of runtime_events (outheap/lib/events)."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.cases import Case, check
from testing.compilers import Compiler
from testing.run import BUILD, ROOT

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
        events = ["-I", "+runtime_events", "runtime_events.cmxa" if native else "runtime_events.cma"]
        modules = ["outheap.mli", "outheap.ml", "outheap_events.mli", "outheap_events.ml", "events.ml"]
        steps.command([*start, "-g", *linked, *events, "outheap_stubs.o", *modules, "-o", "events"], folder)

    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    return steps.step(folder, files, words, build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if c.major == 5]
    if not matrix.chosen_flavours(metafunc.config):
        pairs += [(c, STOCK) for c in matrix.ends() if c in matrix.known_to_outheap() and c.major == 5]
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
