# SPDX-License-Identifier: MIT
"""Memory that follows the data (setting memory=follow): what is resident after a table was dropped, in programs that go
on and in idle ones; forks and unloading; programs that know their data, whose heap is compacted at the end of every
cycle, with and without the helper."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import test_helper
import test_helper_basic
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.programs import words_of
from testing.run import BUILD, ROOT, run

SOURCES = [ROOT / "outheap/test/memory" / name for name in ("follow.ml", "follow_stubs.c")]
# Pauses are as long as a busy machine makes them: here they do not decide.
FOLLOW = "memory=follow,memory.idle=500ms,memory.pause=10s,memory.idle.pause=10s"
ALWAYS = "memory=follow,memory.idle=20ms,debug.compact=1"
BOTH = f"{ALWAYS},helper=on"
KINDS = ("work", "idle", "sparse", "running", "finalised", "threads", "forked")
SLOW = ("work", "running")
NO_IDLE = "5.3"  # versions before this one do not collect idle programs


def program(compiler: Compiler, flavour: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap" / f"memory-{flavour}"
    library = variants.library(compiler, flavour)

    def build() -> None:
        for file in SOURCES:
            shutil.copy(file, folder)
        linked = ["-I", library, "-runtime-variant", variants.SUFFIX[flavour], *compiler.libraries]
        parts = ["unix.cmxa", "threads.cmxa", *(file.name for file in SOURCES)]
        steps.command([compiler.ocamlopt, *linked, *parts, "-o", "follow"], folder)

    return steps.step(folder, SOURCES, [compiler.prefix, flavour, (library / "built").read_text()], build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if c.major >= 5 and f in ("release", "debug")]
    if "part" in metafunc.fixturenames:
        found = [
            (c, f, p)
            for c, f in pairs
            for p, words in words_of(test_helper.program(c, f) / "soak").items()
            if "limited" not in words and ("slow" not in words or metafunc.config.getoption("everything"))
        ]
        ids = [f"{c.name}-{f}-{p}" for c, f, p in found]
        metafunc.parametrize(("compiler", "flavour", "part"), found, ids=ids)
        return
    metafunc.parametrize(("compiler", "flavour"), pairs, ids=[f"{c.name}-{f}" for c, f in pairs])


@pytest.mark.parametrize("kind", KINDS)
def test_memory_follows(compiler: Compiler, flavour: str, kind: str) -> None:
    if compiler.version < NO_IDLE and kind != "work":
        pytest.skip("this version does not collect idle programs, or has no compaction")
    if flavour == "debug" and kind in SLOW:
        pytest.skip("the debug runtime is too slow for cycles by time")
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": FOLLOW, "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", kind, "45"], folder, folder / f"logs/{kind}.log", 120, settings)
    assert outcome.passed, outcome.tail()


def test_memory_stays_without_it(compiler: Compiler, flavour: str) -> None:
    """The control."""
    folder = program(compiler, flavour)
    outcome = run(["./follow", "idle", "-70"], folder, folder / "logs/stock.log", 120, {"OCAMLRUNPARAM": "v=0,b"})
    assert outcome.passed, outcome.tail()


def test_forks_beside_the_keeper(compiler: Compiler, flavour: str) -> None:
    """Locks are taken in one order by a fork, and by the keeper, which has the domain's."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": BOTH.replace("20ms", "5ms"), "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", "forking", "0"], folder, folder / "logs/forking.log", 120, settings)
    assert outcome.passed, outcome.tail()


def test_plugin_is_unloaded(compiler: Compiler, flavour: str) -> None:
    if flavour != "release" or compiler.version < "5.4":
        pytest.skip("the program is built in another flavour, or the runtime leaves threads")
    folder = test_helper.program(compiler, flavour)
    settings = {"OUTHEAP": BOTH, "OCAMLRUNPARAM": "b", "SOAK_CELLS": "400000"}
    outcome = run(["./soak_host"], folder, folder / "logs/keeper-plugin.log", 120, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("setting", [ALWAYS, BOTH], ids=["alone", "with-helper"])
def test_compaction_in_every_cycle(compiler: Compiler, flavour: str, part: str, setting: str) -> None:
    folder = test_helper.program(compiler, flavour)
    settings = {"OUTHEAP": setting, "OCAMLRUNPARAM": "v=0,b,s=32k"}
    command = ["./soak", part, "--seed", str(matrix.seed()), "--seconds", "0.6", "--no-weak"]
    outcome = run(command, folder, folder / f"logs/compact-{part}-{setting[-2:]}.log", 240, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("basic", test_helper_basic.PARTS)
def test_compaction_with_all_kinds_of_blocks(compiler: Compiler, flavour: str, basic: str) -> None:
    folder = test_helper_basic.program(compiler, flavour)
    settings = {"OUTHEAP": ALWAYS, "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./program", basic], folder, folder / f"logs/compact-{basic}.log", 300, settings)
    assert outcome.passed, outcome.tail()
