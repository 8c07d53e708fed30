# SPDX-License-Identifier: MIT
"""The helper (setting `helper`): a thread that marks beside the domains. A program with all kinds of blocks, in one
domain and in several, with forks, and without the helper for comparison."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, run

HOME = ROOT / "outheap"
LIMIT = 300
FLAVOURS = ("release", "debug", "bytecode")
PARTS = ("tree", "roots", "domains", "forks", "stops")


def program(compiler: Compiler, flavour: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap" / f"helper-basic-{flavour}"
    library = variants.library(compiler, flavour)
    header = HOME / "include/outheap.h"
    clock = [HOME / "test/memory" / name for name in ("clock_stubs.c", "clock.ml")]
    files = [HOME / "test/variant/helped.ml", *clock, *(HOME / "lib/outheap").glob("outheap*.*"), header]

    def build() -> None:
        native = not flavour.startswith("bytecode")
        start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
        unix = "unix.cmxa" if native else "unix.cma"
        for file in files[:-1]:
            shutil.copy(file, folder)
        steps.command(
            [*start, "-g", "-w", "+a-4-9-40-41-42-44-45-70", "-I", library]
            + ["-runtime-variant", variants.SUFFIX[flavour], "-I", "+unix", unix, "-ccopt", f"-I {HOME}/include"]
            + ["outheap_stubs.c", "outheap.mli", "outheap.ml", *(f.name for f in clock), "helped.ml", "-o", "program"],
            folder,
        )

    return steps.step(folder, files, [compiler.prefix, flavour, (library / "built").read_text()], build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if c.major >= 5 and f in FLAVOURS]
    metafunc.parametrize(("compiler", "flavour"), pairs, ids=[f"{c.name}-{f}" for c, f in pairs])


def _has_helper(compiler: Compiler) -> bool:
    return compiler.version.startswith(("5.4", "5.5"))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("setting", ["off", "auto", "on"])
def test_helper(compiler: Compiler, flavour: str, setting: str, part: str) -> None:
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": f"helper={setting},stats=exit", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./program", part], folder, folder / f"logs/{setting}-{part}.log", LIMIT, settings)
    assert outcome.passed, outcome.tail()
    if setting == "on" and _has_helper(compiler):
        # Children of a fork print theirs before.
        words = re.findall(r"^outheap: helper.words (\d+)$", outcome.text, re.MULTILINE)
        assert words and int(words[-1]) > 1_000_000, outcome.text
    if setting == "on" and not _has_helper(compiler):
        assert "helper is not available" in outcome.text


def test_what_it_gains_is_spent_on_memory(compiler: Compiler, flavour: str) -> None:
    """memory=small: half of space_overhead, in cycles in which the helper takes part, and in no other."""
    if not _has_helper(compiler) or flavour == "bytecode":
        pytest.skip("no helper, or a slow program: more of its cycles come by time")
    folder = program(compiler, flavour)

    def cycles(memory: str, helper: str) -> tuple[int, int]:
        outheap = f"debug.clock=step,memory={memory},helper={helper},stats=exit"  # no cycle comes by time
        settings = {"OUTHEAP": outheap, "OCAMLRUNPARAM": "v=0,b,o=200"}
        log = folder / f"logs/window-{memory}-{helper}.log"
        outcome = run(["./program", "window"], folder, log, LIMIT, settings)
        assert outcome.passed, outcome.tail()
        all_cycles = re.search(r"^cycles (\d+)$", outcome.text, re.MULTILINE)
        frugal = re.search(r"^outheap: helper.frugal (\d+)$", outcome.text, re.MULTILINE)
        assert all_cycles, outcome.text
        return int(all_cycles[1]), int(frugal[1]) if frugal else 0

    small, frugal = cycles("small", "on")
    follow, none = cycles("follow", "on")
    assert none == 0
    assert frugal >= 3 and small - follow >= frugal / 5, (frugal, small, follow)  # such a cycle is shorter
    assert cycles("small", "off")[1] == 0
