# SPDX-License-Identifier: MIT
"""The variant over one area of memory that grows at its end (outheap-build --backend sbrk): programs with one thread,
which are killed when they map memory in any other way once `main` runs."""

from __future__ import annotations

import platform
import shutil
import signal
import sys
from pathlib import Path

import pytest
import test_foreign
import test_variant
from testing import matrix, steps, torture, variants
from testing.cases import Case, check, params
from testing.compilers import Compiler
from testing.programs import CC
from testing.run import BUILD, ROOT, run
from testing.torture import Runtime

HOME = ROOT / "outheap"
SOURCES = HOME / "test/sbrk"
FLAVOUR = "sbrk"
LIMIT = 240
OWN = ("growth", "minor-heaps", "stacks", "libraries", "gives-back")
VARIANT = ("kinds", "polymorphic", "large-blocks", "minor-heaps", "memprof", "reports", "forks")
FOREIGN = ("white", "malloc", "data", "constants")  # others map memory themselves
ALONE = ["--no-threads", "--without", "domain-result"]  # which start a thread
TORTURE = (
    ("", "", []),
    ("debug.marking=table", "s=4k", []),
    ("", "s=8k", ["--only", "weak,ephemeron,ephemeron-table,finaliser,custom,lazy,continuation,marshal,many"]),
)

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc", reason="needs Linux with glibc"
)


def guard() -> Path:
    folder = BUILD / "outheap/only-sbrk"
    source = SOURCES / "only_sbrk.c"
    words = [CC, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-ldl"]
    return steps.step(folder, [source], words, lambda: steps.command([*words, "-o", "only_sbrk.so"], folder))


def program(compiler: Compiler, flavour: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap" / f"sbrk-{flavour}"
    library = variants.library(compiler, flavour)
    binding = HOME / "lib/outheap"
    files = [*SOURCES.iterdir(), *binding.iterdir(), HOME / "include/outheap.h"]

    def build() -> None:
        for file in [*SOURCES.glob("*.ml"), *binding.glob("outheap.ml*"), *binding.glob("outheap_stubs.c")]:
            shutil.copy(file, folder)
        shutil.copy(SOURCES / f"fibers{compiler.major}.ml", folder / "fibers.ml")
        words = [compiler.ocamlopt, "-g", "-w", "+a-4-9-40..42-44-45-70", *compiler.libraries]
        words += ["-I", library, "-runtime-variant", variants.SUFFIX[flavour], "-ccopt", f"-I {HOME}/include"]
        units = ["outheap_stubs.c", "outheap.mli", "outheap.ml", "fibers.ml", "sbrk.ml"]
        steps.command([*words, "unix.cmxa", "threads.cmxa", *units, "-o", "sbrk"], folder)

    return steps.step(folder, files, [compiler.prefix, flavour, (library / "built").read_text()], build)


def guarded(*words: str) -> list[str]:
    return ["env", f"LD_PRELOAD={guard()}/only_sbrk.so", *words]


def _cases(compiler: Compiler) -> list[Case]:
    found = []

    def add(name: str, words: list[str], folder: object, settings: dict[str, str] | None = None) -> None:
        group = f"{compiler.name}-{FLAVOUR}"
        found.append(Case("outheap", group, f"sbrk/{name}", words, LIMIT, folder, settings or {}))

    for part in OWN:
        add(part, guarded("./sbrk", part), lambda: program(compiler, FLAVOUR))
    refused = ["sh", "-c", f"ulimit -v 600000 && exec {' '.join(guarded('./sbrk', 'refused'))}"]
    add("refused", refused, lambda: program(compiler, FLAVOUR))
    add("beside-a-thread", ["./sbrk", "beside-a-thread"], lambda: program(compiler, FLAVOUR))  # which is mapped
    for part in VARIANT:
        add(f"variant-{part}", guarded("./program", part), lambda: test_variant.program(compiler, FLAVOUR))
    for kind in FOREIGN:
        add(f"foreign-{kind}", guarded("./foreign", kind), lambda: test_foreign.program(compiler, FLAVOUR))
    runtime = Runtime(compiler, FLAVOUR)
    for number, (outheap, runparam, more) in enumerate(TORTURE):
        words = ["./torture", "--seed", str(matrix.seed() + number), "--seconds", "5", *ALONE, *more]
        settings = runtime.settings(outheap, runparam) | {"TORTURE_EARLY": "1"}
        add(f"torture-{number}", guarded(*words), lambda: torture.build(runtime), settings)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    compilers = [c for c, flavour in matrix.variant(metafunc.config) if flavour == "release"]
    if "case" in metafunc.fixturenames:
        listed = lambda: [case for compiler in compilers for case in _cases(compiler)]  # noqa: E731
        metafunc.parametrize("case", params("outheap", FLAVOUR, listed))
    elif "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", compilers, ids=lambda c: c.name)


def test_with_nothing_but_sbrk(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(("flavour", "part"), [("release", "growth"), (FLAVOUR, "maps"), (FLAVOUR, "threads")])
def test_what_maps_is_killed(compiler: Compiler, flavour: str, part: str) -> None:
    """The ordinary variant, files that are mapped, threads: so the guard is there."""
    folder = program(compiler, flavour)
    outcome = run(guarded("./sbrk", part), folder, folder / f"logs/killed-{part}.log", LIMIT)
    if outcome.skipped:
        pytest.skip(outcome.reason())
    assert outcome.code == -signal.SIGSYS, outcome.tail()
