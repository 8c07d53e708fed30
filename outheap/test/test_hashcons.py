# SPDX-License-Identifier: MIT
"""Hash-consing: values in cells outside the heap with the variant on OCaml 5, and in the heap otherwise."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.cases import Case, check, params
from testing.compilers import Compiler, with_tsan
from testing.programs import words_of
from testing.run import BUILD, ROOT, run

HOME = ROOT / "outheap"
STOCK, SANITIZED, THREADS, TINY = "stock", "asan", "tsan", "tiny"
SANITIZERS = "-fsanitize=address,undefined"
ALONE = ("sets", "kinds", "refused", "hashes", "deep", "churn", "paced", "stackless")  # with any cells: the same
WITHOUT = {
    # Collections of cells take small steps, and freed cells are overwritten.
    TINY: (*ALONE, "threads"),
    # With a compiler for ThreadSanitizer everything is instrumented: OCaml code, runtime, library. It has no address
    # space for the zone, so cells lie where the system puts them.
    THREADS: (*ALONE, "phases", "forks"),
}
MODULES = ("domains", "checks", "terms", "model", "life", "nodes", "crowd", "limits", "test")


# What keeps cells alive, what frees them, and what keeps values unique, each left out once: some part must notice.
# File, text, what takes its place, parts.
MUTATIONS = {
    "cells-are-constants": (
        "region_runtime.c",
        "if (outheap_region_marker_has_cells(block)) return false;",
        "",
        ("refused",),
    ),
    "lookups-not-reached": ("hashcons_collect.c", "  outheap_hashcons_reach_set(c);\n", "", ("phases",)),
    "lookups-not-marked": ("hashcons_collect.c", "_CLOSE: shade(c); break;", "_CLOSE: break;", ("phases",)),
    "not-marked-in-sweeping": (
        "hashcons_collect.c",
        "_SWEEP: outheap_hashcons_mark_set(c); break;",
        "_SWEEP: break;",
        ("random", "phases"),
    ),
    "dead-ones-found": (
        "hashcons_memory.h",
        "phase == OUTHEAP_HASHCONS_SWEEP &&",
        "phase > OUTHEAP_HASHCONS_CLEAR &&",
        ("random", "phases"),
    ),
    "no-closure": ("hashcons_collect.c", "      shade_at(v);", "      (void)v;", ("life",)),
    "reach-bits-not-read": (
        "hashcons_collect.c",
        "if (!scan.again) shade_at(a);",
        "if (!scan.again) (void)a;",
        ("life",),
    ),
    "overflow-forgotten": ("hashcons_collect.c", "  if (stack.overflowed) {", "  if (false) {", ("stackless",)),
    "maps-not-cleared": ("hashcons_collect.c", "      memset(", "      (void)(", ("life",)),
    "one-map": ("hashcons_collect.c", "    reach->current = !reach->current;\n", "", ("life",)),
    "no-other-pass": (
        "hashcons_table.c",
        "    if (t->newest <= s->since) return NULL;",
        "    return NULL;",
        ("crowded",),
    ),
    "place-kept": ("hashcons_table.c", "if (s->epoch != t->epoch) find", "if (s->epoch == 0) find", ("crowded",)),
    "order-not-kept": ("hashcons_table.c", "  while (old[start] != 0) start++;\n", "", ("crowded",)),
    "node-is-all": ("outheap_hashcons_stubs.c", "(value)c[OUTHEAP_HASHCONS_NODE] == node ?", "true ?", ("given",)),
    "nodes-stay": ("hashcons_node.c", "item_count == 0 ? fate_of_node", "false ? fate_of_node", ("given",)),
    "no-sharing": ("hashcons_node.c", "if (items[i].source == v) return i;", "(void)v;", ("kinds",)),
}


def _files() -> list[Path]:
    parts = ("test/hashcons", "lib/hashcons", "lib/linear", "lib/region", "include")
    return [f for part in parts for f in (HOME / part).rglob("*") if f.is_file()]


def _c(compiler: Compiler, flavour: str, folder: Path) -> list[str]:
    """Compiles what is in C; the objects."""
    kind = SANITIZERS if flavour == SANITIZED else "-O2"
    tiny = "-DOUTHEAP_HASHCONS_TINY -DOUTHEAP_HASHCONS_POISON" if flavour == TINY else ""
    sources = sorted(folder.glob("*.c"))
    commands = []
    for source in sources:
        without = source.name == "hashcons_test_stubs.c" or "linear" in source.name
        faults = "" if without else "-include hashcons_faults.h"
        options = f"-std=gnu11 -Wall -Wextra {kind} {tiny} {faults} -I . -I {HOME}/include"
        commands.append([compiler.ocamlopt, "-g", "-ccopt", options, "-c", source.name])
    steps.commands(commands, folder)
    return [f"{source.stem}.o" for source in sources]


def _link(compiler: Compiler, flavour: str, folder: Path, parts: list[str]) -> None:
    native = not flavour.startswith("bytecode")
    start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
    of_variant = "release" if flavour in (TINY, SANITIZED, THREADS) else flavour
    linked = []
    if flavour != STOCK:
        linked = ["-I", variants.library(compiler, of_variant), "-runtime-variant", variants.SUFFIX[of_variant]]
    sanitized = ["-ccopt", SANITIZERS] if flavour == SANITIZED else []
    extension = "cmxa" if native else "cma"
    libraries = [*compiler.libraries, f"unix.{extension}", f"threads.{extension}"]
    steps.command([*start, "-g", *linked, *sanitized, *libraries, *parts, "-o", "hashcons"], folder)


@cache
def program(compiler: Compiler, flavour: str) -> Path:
    """The folder of the test program; `stock`: linked with the runtime of the compiler."""
    name = compiler.name if flavour == STOCK else f"{compiler.name}+outheap"
    folder = BUILD / name / f"hashcons-{flavour}"
    of_variant = "release" if flavour in (TINY, SANITIZED, THREADS) else flavour
    library = None if flavour == STOCK else variants.library(compiler, of_variant)

    def build() -> None:
        for file in _files():
            shutil.copy(file, folder)
        shutil.copy(folder / f"hashcons_domains{compiler.major}.ml", folder / "hashcons_domains.ml")
        modules = [*compiler.in_order(folder.glob("outheap_*.ml*")), *(f"hashcons_{m}.ml" for m in MODULES)]
        _link(compiler, flavour, folder, [*_c(compiler, flavour, folder), *modules])

    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    return steps.step(folder, _files(), words, build)


def _cases(compiler: Compiler, flavour: str, listed: dict[str, list[str]], everything: bool) -> list[Case]:
    also_long = everything and flavour in ("release", TINY)
    parts = [
        p for p, words in listed.items() if p not in WITHOUT.get(flavour, ()) and ("long" not in words or also_long)
    ]
    settings = {"OCAMLRUNPARAM": "v=0,V=1" if "debug" in flavour else "b", "SEED": str(matrix.seed())}
    if flavour == SANITIZED:  # OCaml has a handler of its own, and keeps what it allocates
        settings["ASAN_OPTIONS"] = "detect_leaks=0:handle_segv=0"
    if flavour == THREADS:
        settings["TSAN_OPTIONS"] = "halt_on_error=1:die_after_fork=0:second_deadlock_stack=1"
    commands = {part: (["./hashcons", part], settings) for part in parts}
    if "debug" in flavour:  # the verification of such heaps takes minutes
        commands["deep"] = (["./hashcons", "deep"], {"OCAMLRUNPARAM": "v=0"})
    if flavour == "release":
        for setting in ("debug.marking=table", "debug.report=1000000"):
            commands[f"life-{setting}"] = (["./hashcons", "life", "again", "phases"], {**settings, "OUTHEAP": setting})
        if compiler.major >= 5:
            threads = {**settings, "OUTHEAP": variants.THREADS, "OCAMLRUNPARAM": "s=32k"}
            commands["with-threads"] = (["./hashcons", "random", "life", "again", "phases", "domains"], threads)
        little = ["sh", "-c", "ulimit -v 1000000 && exec ./hashcons little"]
        commands["little-address-space"] = (little, {"OCAMLRUNPARAM": "d=4"})
    if flavour == TINY:
        small = {**settings, "OCAMLRUNPARAM": "s=4k"}
        commands["small-minor-heaps"] = (["./hashcons", "random", "life", "again", "phases"], small)
    return [
        Case(
            "outheap",
            f"{compiler.name}-{flavour}",
            f"hashcons/{name}",
            command,
            600,
            lambda: program(compiler, flavour),
            environment,
            slow="slow" in listed.get(name, ()),
            timing="timing" in listed.get(name, ()),
        )
        for name, (command, environment) in commands.items()
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mutation" in metafunc.fixturenames:
        compilers = [c for c in matrix.ends() if c in matrix.known_to_outheap() and c.major >= 5]
        pairs = [pytest.param(c, m, id=f"{c.name} hashcons/without/{m}") for c in compilers for m in MUTATIONS]
        metafunc.parametrize("compiler, mutation", pairs)
        return
    if "case" not in metafunc.fixturenames:
        return
    everything = metafunc.config.getoption("everything")
    chosen = matrix.chosen_flavours(metafunc.config)
    ends = [c for c in matrix.ends() if c in matrix.known_to_outheap()]
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if chosen or c in ends or f != "bytecode"]
    # OCaml 4.14 has values in the heap, with whatever runtime.
    pairs = [(c, f) for c, f in pairs if c.major >= 5 or f == "release"]
    if not chosen:
        pairs += [(c, f) for c in ends for f in (STOCK, TINY) if f == STOCK or c.major >= 5]
        pairs += [(c, SANITIZED) for c in ends if everything and c.major >= 5]
        pairs += [(t, THREADS) for c in ends if everything and c.major >= 5 and (t := with_tsan(c))]

    def listed() -> list[Case]:
        parts = words_of(program(matrix.known_to_outheap()[0], STOCK) / "hashcons") if pairs else {}
        return [case for compiler, flavour in pairs for case in _cases(compiler, flavour, parts, everything)]

    metafunc.parametrize("case", params("outheap", "hashcons", listed))


def test_hashcons(case: Case) -> None:
    check(case)


def test_every_mutation_applies() -> None:
    sources = {f.name: f.read_text() for f in _files()}
    for mutation, (name, text, *_) in MUTATIONS.items():
        assert sources[name].count(text) == 1, mutation


@pytest.mark.everything
def test_mutation(compiler: Compiler, mutation: str, tmp_path: Path) -> None:
    name, text, other, parts = MUTATIONS[mutation]
    folder = tmp_path / "mutated"
    shutil.copytree(program(compiler, TINY), folder)
    source = (folder / name).read_text()
    assert source.count(text) == 1
    (folder / name).write_text(source.replace(text, other))
    libraries = [Path(name).stem for name in compiler.in_order(folder.glob("outheap_*.ml"))]
    modules = [f"{m}.cmx" for m in (*libraries, *(f"hashcons_{m}" for m in MODULES))]
    _link(compiler, TINY, folder, [*_c(compiler, TINY, folder), *modules])
    settings = {"SEED": "1", "OCAMLRUNPARAM": "s=4k"}
    assert any(not run(["./hashcons", p], folder, folder / f"{p}.log", 120, settings).passed for p in parts)
