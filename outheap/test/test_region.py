# SPDX-License-Identifier: MIT
"""Regions: copies, images, and how they end, with the variant and with the stock runtime."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.cases import Case, check, params
from testing.compilers import Compiler, with_tsan
from testing.programs import words_of
from testing.run import BUILD, ROOT

HOME = ROOT / "outheap"
SOURCES = HOME / "test/region"
LIMIT = 600
STOCK, SANITIZED, THREADS = "stock", "asan", "tsan"
THREADED = ("release", STOCK)  # have a program with threads, too
# What is copied, and where, with a second process for each copy above a page.
SECOND = (
    *("life", "revokes", "random", "merged", "kinds", "refused", "nested", "needs", "images", "failures", "obstacles"),
    *("tracked-images", "tracked-roots", "lazies", "c", "together", "pins", "places", "domains", "beside"),
)
# With a compiler for ThreadSanitizer everything is instrumented: OCaml code, runtime, library. It has no memory at the
# addresses of regions, so the system places them; these parts are about their places, or need a terabyte of addresses.
WITHOUT_THREADS = ("images", "needs", "obstacles", "large", "many", "at-limit")
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize=alignment"  # bigarrays of floats after maximal sharing
MODULES = (
    "region_domains.ml",
    "region_values.ml",
    "region_checks.ml",
    "region_copies.ml",
    "region_life.ml",
    "region_images.ml",
    "region_limits.ml",
    "region_ancient.ml",
    "region_track.ml",
    "region_tracked.ml",
    "region_c.ml",
    "region_messages.ml",
    "region_process.ml",
    "region_test.ml",
)


@cache
def program(compiler: Compiler, flavour: str) -> Path:
    """The folder of the test program; `stock`: linked with the runtime of the compiler."""
    name = compiler.name if flavour in (STOCK, SANITIZED) else f"{compiler.name}+outheap"
    folder = BUILD / name / f"region-{flavour}"
    of_variant = "release" if flavour == THREADS else flavour
    library = None if flavour in (STOCK, SANITIZED) else variants.library(compiler, of_variant)
    boxroot = ROOT / "boxroot"
    parts = ("test/region", "lib/region", "lib/ancient", "include")
    files = [f for part in parts for f in (HOME / part).rglob("*") if f.is_file()]
    both = [*files, *(f for part in ("src", "include") for f in (boxroot / part).rglob("*") if f.is_file())]

    tested = {f.name for f in HOME.glob("lib/region/region_*.c")} | {"outheap_region_stubs.c"}

    def build() -> None:
        for file in files:
            shutil.copy(file, folder)
        shutil.copy(SOURCES / f"region_domains{compiler.major}.ml", folder / "region_domains.ml")
        native = not flavour.startswith("bytecode")
        start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
        linked = ["-I", library, "-runtime-variant", variants.SUFFIX[of_variant]] if library else []
        objects = []
        for source in [*sorted(folder.glob("*.c")), boxroot / "src/all.c"]:
            kind = SANITIZERS if flavour == SANITIZED else "-O2"
            options = f"-std=gnu11 -Wall -Wextra {kind} -I . -I {HOME}/include -I {boxroot}/include"
            # What is tested has calls that can be made to fail.
            faults = "-include region_faults.h" if source.name in tested else ""
            steps.command([compiler.ocamlopt, "-ccopt", f"{options} {faults}", "-c", source], folder)
            objects.append(f"{source.stem}.o")
        unix = [*compiler.libraries, "unix.cmxa" if native else "unix.cma"]
        modules = [*(f"{m}.{kind}" for m in ("outheap_region", "ancient") for kind in ("mli", "ml")), *MODULES]
        if flavour == SANITIZED:
            linked = ["-ccopt", SANITIZERS]
        steps.command([*start, "-g", *linked, *unix, *objects, *modules, "-o", "region"], folder)
        if flavour in THREADED:
            threads = [*modules[:2], "region_domains.ml", "region_threads.ml", "-o", "at-once"]
            steps.command([*start, "-g", *linked, *unix, "-thread", "threads.cmxa", *objects, *threads], folder)

    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    return steps.step(folder, both, words, build)


def _cases(compiler: Compiler, flavour: str, listed: dict[str, list[str]], everything: bool) -> list[Case]:
    parts = [p for p, words in listed.items() if "long" not in words or (everything and flavour == "release")]
    if flavour == THREADS:
        parts = [part for part in parts if part not in WITHOUT_THREADS]
    runparam = "v=0,V=1" if "debug" in flavour else "b"
    settings: dict[str, dict[str, str]] = {part: {"OCAMLRUNPARAM": runparam} for part in parts}
    if flavour == SANITIZED:
        for part in parts:  # OCaml has a handler of its own, and keeps what it allocates
            settings[part] = {"ASAN_OPTIONS": "detect_leaks=0:handle_segv=0"}
    if flavour == THREADS:
        for part in parts:
            settings[part] = {"TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:handle_segv=0:second_deadlock_stack=1"}
    if "debug" in flavour:
        for part in ("deep", "many"):  # the verification of such heaps takes minutes
            settings[part] = {"OCAMLRUNPARAM": "v=0"}
    commands = {part: ["./region", part] for part in parts}
    if flavour == THREADS:
        commands["race"] = ["sh", "-c", "./region race; test $? = 66"]
        settings["race"] = settings["moments"]
    if flavour == "release":
        for setting in ("debug.marking=table", "debug.report=1000000"):
            commands[f"life, {setting}"] = ["./region", "life", "churn", "deletes"]
            settings[f"life, {setting}"] = {"OUTHEAP": setting}
        if compiler.major >= 5:
            commands["with threads"] = [
                "./region",
                "life",
                "random",
                "churn",
                "deletes",
                "tracked-churn",
                "tracked-slices",
            ]
            settings["with threads"] = {"OUTHEAP": variants.THREADS, "OCAMLRUNPARAM": "s=32k"}
        commands["second process"] = ["./region", *SECOND]
        settings["second process"] = {"REGION_TEST_PATIENCE": "0"}
        commands["small minor heaps"] = ["./region", "life", "random", "churn"]
        settings["small minor heaps"] = {"OCAMLRUNPARAM": "s=4k"}
    if flavour in THREADED:
        commands["at once"], settings["at once"] = ["./at-once"], {}
        commands["little address space"] = ["sh", "-c", "ulimit -v 1000000 && exec ./region little"]
        settings["little address space"] = {"OCAMLRUNPARAM": "d=4"}
    if flavour == "release":
        commands["little address space, dropped"] = ["sh", "-c", "ulimit -v 2000000 && exec ./region dropped-little"]
        settings["little address space, dropped"] = {"OCAMLRUNPARAM": "d=4"}
    group = f"{compiler.name}-{flavour}"
    return [
        Case(
            "outheap",
            group,
            f"region/{name.replace(' ', '-')}",
            command,
            LIMIT,
            lambda: program(compiler, flavour),
            settings[name],
            slow=flavour in ("debug", STOCK) and "slow" in listed.get(name, ()),
            timing="timing" in listed.get(name, ()),
        )
        for name, command in commands.items()
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("everything")
    chosen = matrix.chosen_flavours(metafunc.config)
    ends = [c for c in matrix.ends() if c in matrix.known_to_outheap()]
    # What depends on the version of OCaml 5 is in the release and debug flavours.
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if chosen or c in ends or f != "bytecode"]
    if not chosen:
        pairs += [(c, STOCK) for c in ends]
        pairs += [(c, SANITIZED) for c in ends if everything]
        pairs += [(t, THREADS) for c in ends if everything and c.major >= 5 and (t := with_tsan(c))]

    def listed() -> list[Case]:
        parts = words_of(program(matrix.known_to_outheap()[0], STOCK) / "region") if pairs else {}
        return [case for compiler, flavour in pairs for case in _cases(compiler, flavour, parts, everything)]

    metafunc.parametrize("case", params("outheap", "region", listed))


def test_region(case: Case) -> None:
    check(case)
