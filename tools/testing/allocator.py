# SPDX-License-Identifier: MIT
"""Outheap's allocator and page table without OCaml: every outheap/test/unit/*_test.c is a program, linked with
outheap/runtime/core/*.c."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from testing import steps
from testing.flavours import OUTHEAP, Flavour
from testing.programs import CC, list_of, sources
from testing.run import BUILD, ROOT

HOME = ROOT / "outheap"
TESTS = HOME / "test/unit"
FLAGS = ("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing", "-fwrapv", "-DOH_FAULTS")
LIMIT = 300


def compiler_of(flavour: Flavour) -> str:
    return flavour.compiler or CC


@cache
def available(flavour: Flavour) -> bool:
    """Installs what is missing, where that may be done. The emulator of a path is a file of ours."""
    target = [f for f in flavour.cflags if f.startswith("--target=")]
    emulator = [flavour.emulator] if flavour.emulator and "/" not in flavour.emulator else []
    need = [ROOT / "tools/need", compiler_of(flavour), *emulator, *flavour.needs]
    settings = {**os.environ, "CC": " ".join([compiler_of(flavour), *target])}
    return subprocess.run(need, stdin=subprocess.DEVNULL, check=False, env=settings).returncode == 0


def programs(flavour: Flavour | None = None) -> list[str]:
    """Of a flavour, or all."""
    found = sorted(file.stem for file in TESTS.glob("*_test.c"))
    return [name for name in found if not flavour or not flavour.programs or name in flavour.programs]


def item(program: str, test: str) -> str:
    return f"{program.removesuffix('_test')}/{test.replace('_', '-')}"


def lacks(flavour: Flavour, program: str, test: str) -> bool:
    return item(program, test) in flavour.without or bool(flavour.programs and program not in flavour.programs)


@cache
def tests() -> list[tuple[str, str]]:
    """(program, test), by the programs' own lists in the flavour that has all of them."""
    folder = build(OUTHEAP["checked"])
    return [(program, test) for program in programs() for test in list_of(folder / program)]


@cache
def build(flavour: Flavour) -> Path:
    folder = BUILD / "outheap" / flavour.name

    def compile_c(source: Path, instrumented: bool) -> list[str | Path]:
        flags = [f for f in flavour.cflags if instrumented or f not in ("--coverage", "-fprofile-update=atomic")]
        include = [f"-I{ROOT / folder}" for folder in flavour.include]
        include += [f"-I{HOME}/include", f"-I{HOME}/runtime/core", f"-I{TESTS}"]
        return [compiler_of(flavour), *FLAGS, *flags, "-c", source, *include, "-o", f"{source.stem}.o"]

    def make() -> None:
        library = sorted((HOME / "runtime/core").glob("*.c"))
        steps.commands(
            [compile_c(f, True) for f in library]
            + [compile_c(TESTS / f"{name}.c", False) for name in programs(flavour)],
            folder,
        )
        objects = [f"{f.stem}.o" for f in library]
        if flavour.measures_coverage:
            steps.command([CC, "-c", ROOT / "tools/testing/coverage.c", "-o", "coverage.o"], folder)
            objects.append("coverage.o")
        steps.commands(
            [
                [compiler_of(flavour), *flavour.lflags, f"{name}.o", *objects, *flavour.libraries, "-o", name]
                for name in programs(flavour)
            ],
            folder,
        )

    files = sources("outheap/include", "outheap/runtime/core", "outheap/test/unit", "tools/testing", *flavour.include)
    return steps.step(folder, files, [flavour, compiler_of(flavour), os.environ.get("CFLAGS", "")], make)
