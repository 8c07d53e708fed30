# SPDX-License-Identifier: MIT
"""What is promised of the helper (setting `helper`), where a program that merely runs does not show it: its thread
stands still at the worst moment, is ended early, twice, from anywhere; a fork in every phase of the collector; its
stretches of work given to several threads; no thread to be had; a setting that is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, Outcome, run

HOME = ROOT / "outheap"
LIMIT = 300
SETTINGS = {"alone": "helper=on,stats=exit", "followed": "helper=on,stats=exit,memory=follow,debug.compact=1"}
FLAVOURS = ("release", "debug", "bytecode")
PARTS = ("stands", "forks", "early", "twice", "everywhere", "spans")


def program(compiler: Compiler, flavour: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap" / f"held-{flavour}"
    library = variants.library(compiler, flavour)
    parts = [HOME / "test/held/held.ml", HOME / "test/held/held_stubs.c", *(HOME / "lib/outheap").glob("outheap*.*")]
    header = HOME / "include/outheap.h"

    def build() -> None:
        native = not flavour.startswith("bytecode")
        start, libraries = [compiler.ocamlopt], ["unix.cmxa", "threads.cmxa"]
        if not native:
            start, libraries = [compiler.ocamlc, "-custom"], ["unix.cma", "threads.cma"]
        for file in parts:
            shutil.copy(file, folder)
        steps.command(
            [*start, "-g", "-w", "+a-4-9-40-41-42-44-45-70", "-I", library]
            + ["-runtime-variant", variants.SUFFIX[flavour], "-I", "+unix", "-I", "+threads", *libraries]
            + ["-ccopt", f"-std=gnu11 -O2 -Wall -Wextra -I {HOME}/include", "held_stubs.c"]
            + ["outheap_stubs.c", "outheap.mli", "outheap.ml", "held.ml", "-o", "held"],
            folder,
        )

    return steps.step(folder, [*parts, header], [compiler.prefix, flavour, (library / "built").read_text()], build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pairs = [
        (c, f) for c, f in matrix.variant(metafunc.config) if c.version.startswith(("5.4", "5.5")) and f in FLAVOURS
    ]
    metafunc.parametrize(("compiler", "flavour"), pairs, ids=[f"{c.name}-{f}" for c, f in pairs])


def _run(compiler: Compiler, flavour: str, part: str, outheap: str, name: str) -> Outcome:
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": outheap, "OCAMLRUNPARAM": "v=0,b,s=32k,o=30"}
    outcome = run(["./held", part, str(matrix.seed())], folder, folder / f"logs/{part}-{name}.log", LIMIT, settings)
    assert outcome.passed, outcome.tail()
    return outcome


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("part", PARTS)
def test_contract(compiler: Compiler, flavour: str, part: str, setting: str) -> None:
    text = _run(compiler, flavour, part, SETTINGS[setting], setting).text
    words = [int(n) for n in re.findall(r"^outheap: helper.words (\d+)$", text, re.MULTILINE)]
    assert (words[-1] == 0) == (part == "early"), text
    if part == "forks":
        paused = re.findall(r"^outheap: helper.paused (\d+)$", text, re.MULTILINE)
        assert int(paused[-1]) >= 1, text


def test_without_a_thread(compiler: Compiler, flavour: str) -> None:
    text = _run(compiler, flavour, "none", "helper=on", "alone").text
    assert text.count("no thread for the helper") == 1, text


@pytest.mark.parametrize("value", ["2", "yes", ""])
def test_refused(compiler: Compiler, flavour: str, value: str) -> None:
    """There is one helper, or none."""
    text = _run(compiler, flavour, "refused", f"helper={value},stats=exit", f"value-{value}").text
    assert f"ignored: helper={value} (helper is off, auto or on)" in text
    assert "outheap: helper." not in text and "good refused" in text
