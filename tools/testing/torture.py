# SPDX-License-Identifier: MIT
"""The torture test: foreign pointers in every kind of block. Its programs, built with a compiler and a runtime, and
their runs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from testing import steps, variants
from testing.cases import Case
from testing.compilers import Compiler
from testing.programs import CC, list_of
from testing.run import BUILD, ROOT

HOME = ROOT / "outheap"
SOURCES = HOME / "tool/selftest"
RECYCLE = HOME / "test/torture"
MODULES = (
    "foreign_code",
    "foreign",
    "par",
    "cell",
    "structures_blocks",
    "structures_weak",
    "structures_holders",
    "structures",
    "operations",
    "torture",
)
NEEDS_RESERVE = ("freed", "unmapped", "near-maps", "user-wild")  # patterns whose address could become heap
UNREADABLE = ("unreadable", "low", "non-canonical")
WARNINGS = "+a-4-9-40..42-44-45-70"


@dataclass(frozen=True)
class Runtime:
    compiler: Compiler
    flavour: str  # of the variant: release, debug, bytecode; or stock
    library: Path | None = None  # instead of the variant's own

    @property
    def name(self) -> str:
        return f"{self.compiler.name}-{self.flavour}"

    @property
    def is_variant(self) -> bool:
        return self.flavour != "stock"

    @property
    def options(self) -> list[str]:
        """Gc.compact of 5.3's debug runtime fails by itself (boxroot/test/README.md)."""
        return (
            ["--no-compaction"]
            if self.flavour == "debug" and self.compiler.major >= 5 and self.compiler.faulty_debug_account
            else []
        )

    def settings(self, outheap: str = "", runparam: str = "", opaque: bool = True) -> dict[str, str]:
        """The patterns are any words, and memory is full of what looks like headers: so foreign pointers are opaque."""
        outheap = ",".join([*(["opaque=1"] if opaque else []), *([outheap] if outheap else [])])
        params = [p for p in ("V=1,v=0" if self.flavour == "debug" else "", runparam) if p]
        return {"OUTHEAP": outheap, **({"OCAMLRUNPARAM": ",".join(params)} if params else {})}


@cache
def build(runtime: Runtime, name: str = "torture") -> Path:
    compiler = runtime.compiler
    folder = BUILD / (f"{compiler.name}+outheap" if runtime.is_variant else compiler.name) / f"{name}-{runtime.flavour}"
    library = runtime.library or (variants.library(compiler, runtime.flavour) if runtime.is_variant else None)
    files = [f for folder in (SOURCES, RECYCLE) for f in folder.iterdir() if f.is_file()]

    def link(*more: str) -> None:
        native = runtime.flavour != "bytecode"
        start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
        kind = "cmxa" if native else "cma"
        words = [*start, "-g", "-w", WARNINGS, *more]
        if library:
            words += ["-I", library, "-runtime-variant", variants.SUFFIX[runtime.flavour]]
        steps.command(
            [
                *words,
                *compiler.libraries,
                f"unix.{kind}",
                f"threads.{kind}",
                *(f"{m}.ml" for m in MODULES),
                "c_foreign.o",
                "-o",
                "torture",
            ],
            folder,
        )
        steps.command([*words, "recycle.ml", "c_recycle_stubs.o", "-o", "recycle"], folder)

    def make() -> None:
        for file in (*SOURCES.glob("*.ml"), *RECYCLE.glob("*.ml")):
            shutil.copy(file, folder)
        shutil.copy(SOURCES / f"par{compiler.major}.ml", folder / "par.ml")
        for unit in (SOURCES / "foreign.c", RECYCLE / "recycle_stubs.c"):
            steps.command(
                [
                    CC,
                    "-std=gnu11",
                    "-O2",
                    "-g",
                    "-Wall",
                    "-Wextra",
                    "-Wno-unused-parameter",
                    "-Werror",
                    "-c",
                    unit,
                    "-o",
                    f"c_{unit.stem}.o",
                    f"-I{HOME}/include",
                    f"-I{compiler.where}",
                ],
                folder,
            )
        link()

    words = [runtime, (library / "built").read_text() if library and not runtime.library else library]
    return steps.step(folder, files, words, make)


def case_of(
    runtime: Runtime,
    name: str,
    command: list[str],
    limit: float,
    outheap: str = "",
    runparam: str = "",
    random: bool = False,
    folder: Path | None = None,
) -> Case:
    return Case(
        "outheap",
        runtime.name,
        f"torture/{name}",
        command,
        limit,
        lambda: folder or build(runtime),
        runtime.settings(outheap, runparam),
        random,
    )


def random_cases(runtime: Runtime, seed: int, seconds: float, folder: Path | None = None) -> list[Case]:
    limit = seconds * 4 + 120
    cases = []
    compacts = runtime.is_variant and runtime.compiler.major >= 5 and not runtime.options

    def add(name: str, number: int, *options: str, outheap: str = "", runparam: str = "", timed: bool = True) -> None:
        length = ["--seconds", f"{seconds:g}"] if timed else []
        command = ["./torture", "--seed", str(seed + number), *length, *options, *runtime.options]
        cases.append(case_of(runtime, f"random-{name}", command, limit, outheap, runparam, random=True, folder=folder))

    add("one", 0, "--steps", "20000", "--no-threads", timed=False)
    add("threads", 1)
    if runtime.is_variant:
        add("recycle", 2, "--recycle", outheap="reserve=8G")
        add("adaptive", 9, outheap="minor=adaptive:4k-256k", runparam="s=4k")
        if runtime.compiler.major >= 5:
            add("table", 7, outheap="debug.marking=table")
        if compacts:
            add("compacting", 11, outheap="memory=follow,debug.compact=1", runparam="s=16k")
    add("small-heap", 6, runparam="s=4k")
    if runtime.compiler.major >= 5:
        # Weak pointers of domains that end are a fault of the runtime's own, and in 5.1 domains that have threads
        # (boxroot/test/README.md).
        less = ["--no-ephemerons", *(["--no-threads"] if runtime.compiler.version.startswith("5.1.") else [])]
        add("domains-2", 3, "--domains", "2", *less)
        add("domains-4", 4, "--domains", "4", *less)
        if runtime.is_variant:
            add("domains-adaptive", 10, "--domains", "3", *less, outheap="minor=adaptive:4k-256k", runparam="s=4k")
            add("domains-table", 8, "--domains", "3", *less, outheap="debug.marking=table")
            if compacts:
                setting = "memory=follow,debug.compact=1"
                add("domains-compacting", 12, "--domains", "3", *less, outheap=setting, runparam="s=16k")
            add("domains-recycle", 5, "--domains", "3", *less, "--recycle", outheap="reserve=8G")
    return cases


def recycle_cases(runtime: Runtime) -> list[Case]:
    modes = ("malloc", "mmap", "chunks", "beside")
    return [case_of(runtime, f"recycle-{mode}", ["./recycle", mode], 300, "reserve=2G") for mode in modes] + [
        case_of(runtime, f"recycle-met-{mode}", ["./recycle", mode, "met"], 300) for mode in modes
    ]


def scenario_cases(runtime: Runtime) -> list[Case]:
    """Each structure and operation with each kind of pattern. The lists are those of the program on the stock
    runtime."""
    stock = build(Runtime(runtime.compiler, "stock")) / "torture"
    cases = []
    for scenario in list_of(stock):
        for kind in list_of(stock, "--kinds"):
            if kind in NEEDS_RESERVE and not runtime.is_variant:
                continue
            command = ["./torture", "--scenario", f"{scenario}:{kind}", *runtime.options]
            cases.append(
                case_of(runtime, f"{scenario}:{kind}", command, 120, "reserve=4G" if kind in NEEDS_RESERVE else "")
            )
            if kind in UNREADABLE and runtime.is_variant:  # nothing can be taken for a block
                case = case_of(runtime, f"{scenario}:{kind}-default", command, 120)
                cases.append(replace(case, settings=runtime.settings(opaque=False)))
    return cases
