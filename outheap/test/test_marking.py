# SPDX-License-Identifier: MIT
"""The marking loop of OCaml 5: what it must find and pass over, in each form, and whether the tests notice when it is
broken."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import compilers, matrix, steps, variants
from testing.cases import Case, attempt, check, params
from testing.compilers import Compiler
from testing.programs import CC, words_of
from testing.run import BUILD, ROOT

HOME = ROOT / "outheap"
SOURCES = HOME / "test/marking"
LOOP = "runtime/overlay/ocaml5/mark_loop.h"
LIMIT = 300
STOCK = "stock"  # for the list of parts alone
FORMS = {
    "range": "",
    "table": "debug.marking=table",
    "reporting": "debug.report=1000000000",
    "small": "thp=off,keep=0:0%",
}
WARNINGS = "+a-4-9-40..42-44-45-70"

# name: what is replaced in mark_loop.h, by what, and the setting under which it must be noticed
MUTANTS = {
    "candidates-are-not-tested": (
        "return false;\n  return oh_pointer_is_markable_by((uintptr_t)v, OH_REGION_BY_BLOCK);",
        "return false;\n  return true;",
        "range",
    ),
    "all-words-are-candidates": ("end += is;", "end += 1;", "range"),
    "no-word-is-a-candidate": ("end += is;", "end += 0;", "range"),
    "table-index": (">> (OH_CHUNK_LOG - 1)", ">> (OH_CHUNK_LOG - 9)", "table"),
    "immediates": ("return x >> 1 | x << (sizeof x * 8 - 1);", "return x >> 1;", "range"),
    "range-too-short": ("half = oh_heap_range.size / 2;", "half = oh_heap_range.size / 8;", "range"),
    "range-is-kept": (
        "return oh_heap_range_is_whole() ? oh_mark_loop_by",
        "return oh_heap_range.size != 0 ? oh_mark_loop_by",
        "range",
    ),
    "long-blocks-are-passed-over": ("return all != 0;", "return true;", "range"),
    "rest-is-lost": ("if (__builtin_expect(rest != 0, 0)) {", "if (0) {", "range"),
    "rest-begins-late": ("policy->push(stk, from, from + rest);", "policy->push(stk, from + 1, from + rest);", "range"),
    "queue-overflows": ("if (__builtin_expect(end - begin > OH_MARK_LOOP_STEP_UP_TO, 0)) rest += now, now = 0;", "",
                        "range"),
    "step-is-too-long": ("OH_MARK_LOOP_STEP = 64,", "OH_MARK_LOOP_STEP = 100000,", "range"),
    "pointers-into-closures": ("block -= Infix_offset_hd(hd);", "", "range"),
    "blocks-without-fields": ("if (Tag_hd(hd) >= No_scan_tag) {", "if (0) {", "range"),
    "special-blocks-are-not-marked": ("  oh_mark_loop_mark(block, hd);\n", "", "range"),
    "continuations-are-blocks": ("if (Tag_hd(hd) == Cont_tag) {", "if (0) {", "range"),
    "fields-are-not-work": ("      budget -= now;\n      for (value_ptr stop = from + now; from < stop; from++) {\n"
                            "        value v = volatile_load_uninstrumented(from);\n        uintptr_t is",
                            "      for (value_ptr stop = from + now; from < stop; from++) {\n"
                            "        value v = volatile_load_uninstrumented(from);\n        uintptr_t is", "range"),
    "last-candidate-is-lost": ("        end--;\n        goto visit;", "        end--;\n        continue;", "range"),
    "last-candidate-twice": ("        end--;\n        goto visit;", "        end -= 2;\n        goto visit;", "range"),
    "queue-is-left": ("    else if (least != 0) {", "    else if (least != 0 && stk->count != 0) {", "range"),
}  # fmt: skip


def _link(compiler: Compiler, flavour: str, library: Path | None, folder: Path) -> None:
    """Without a library, with the stock runtime, in which functions of the variant are missing."""
    of_variant = ["-ccopt", "-Wl,--unresolved-symbols=ignore-all"]
    if library:
        of_variant = ["-I", library, "-runtime-variant", variants.SUFFIX[flavour]]
    shutil.copy(SOURCES / "marking.ml", folder)
    steps.command([CC, "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c", SOURCES / "marking_stubs.c",
                   f"-I{HOME}/include", f"-I{compiler.where}"], folder)  # fmt: skip
    steps.command([compiler.ocamlopt, "-g", "-w", WARNINGS, *of_variant, *compiler.libraries,
                   "unix.cmxa", "threads.cmxa", "marking.ml", "marking_stubs.o", "-o", "marking"],
                  folder)  # fmt: skip


@cache
def program(compiler: Compiler, flavour: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap" / f"marking-{flavour}"
    library = None if flavour == STOCK else variants.library(compiler, flavour)
    words = [compiler.prefix, flavour, library, (library / "built").read_text() if library else ""]
    return steps.step(folder, list(SOURCES.iterdir()), words, lambda: _link(compiler, flavour, library, folder))


def _runtimes(config: pytest.Config) -> list[tuple[Compiler, str]]:
    return [(c, f) for c, f in matrix.variant(config) if c.major >= 5 and f in ("release", "debug")]


def parts() -> dict[str, list[str]]:
    """By the program's own list."""
    five = [c for c in matrix.known_to_outheap() if c.major >= 5]
    return words_of(program(five[0], STOCK) / "marking") if five else {}


def _case(compiler: Compiler, flavour: str, part: str, form: str, folder: Path | None = None) -> Case:
    # Heap verification, and Gc.compact of 5.3's debug runtime, are other tests' business.
    settings = {"OUTHEAP": FORMS[form], "OCAMLRUNPARAM": "v=0"}
    return Case("outheap", f"{compiler.name}-{flavour}", f"marking/{part}-{form}", ["./marking", part], LIMIT,
                lambda: folder or program(compiler, flavour), settings,
                slow=flavour == "debug" and "slow" in parts()[part])  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    if "case" in metafunc.fixturenames:

        def listed() -> list[Case]:
            return [
                _case(c, f, part, form)
                for c, f in _runtimes(config)
                for part in parts()
                for form in (FORMS if f == "release" or config.getoption("everything") else ("range", "table"))
            ]

        metafunc.parametrize("case", params("outheap", "marking", listed))
    elif "mutant" in metafunc.fixturenames:
        found = [c for c in matrix.known_to_outheap() if c.major >= 5] if config.getoption("everything") else []
        metafunc.parametrize(
            ("compiler", "mutant"), [pytest.param(c, m, id=f"{c.name}-{m}") for c in found for m in MUTANTS]
        )
    elif "compiler" in metafunc.fixturenames:
        wanted = {c for c, f in _runtimes(config) if f == "release"}
        metafunc.parametrize("compiler", sorted(wanted, key=lambda c: c.name), ids=lambda c: c.name)


def test_marking(case: Case) -> None:
    check(case)


def test_mark_stack_grows_before_it_is_compressed(compiler: Compiler) -> None:
    """The graph needs more than a 32nd of the heap, and less than an eighth. Where memory is limited, the bound is that
    of stock. A cycle by time might begin while the graph is made, and follow it in another order."""
    found = {}
    for setting in ("memory=stock", "memory=stock,limit=1T"):
        case = Case("outheap", f"{compiler.name}-release", "marking/mark-stack", ["./marking", "scattered"], LIMIT,
                    lambda: program(compiler, "release"),
                    {"OUTHEAP": setting, "OCAMLRUNPARAM": "v=0xFFFF"})  # fmt: skip
        outcome = attempt(case, case.command, LIMIT, f"mark-stack-{'limit' if 'limit' in setting else 'none'}")
        assert outcome.passed, outcome.tail()
        found[setting] = outcome.text.count("Compressing")
    assert found["memory=stock"] == 0, found
    assert found["memory=stock,limit=1T"] > 0, found


def test_every_mutation_applies() -> None:
    text = (HOME / LOOP).read_text()
    assert {name: text.count(old) for name, (old, _, _) in MUTANTS.items()} == dict.fromkeys(MUTANTS, 1)


@pytest.mark.everything
def test_mutant_is_noticed(compiler: Compiler, mutant: str) -> None:
    old, new, form = MUTANTS[mutant]
    base = BUILD / f"{compiler.name}+outheap" / "mutants" / mutant
    shutil.rmtree(base, ignore_errors=True)
    for part in ("runtime", "include", "tool"):
        shutil.copytree(HOME / part, base / part)
    loop = base / LOOP
    loop.write_text(loop.read_text().replace(old, new))
    library, folder = base / "library", base / "program"
    folder.mkdir()
    sources = compilers.toolchain("--source", compiler.version)
    words = [base / "tool/outheap-build", "--ocaml", compiler.prefix, "--sources", sources, "--self-test", "0"]
    steps.command([*words, "--output", library, "--flavours", "release"], base, compiler.settings)
    _link(compiler, "release", library, folder)
    cases = [_case(compiler, "release", part, form, folder) for part in parts()]
    assert any(not attempt(case, case.command, 60, f"mutant-{mutant}").passed for case in cases), (
        f"nothing misses {mutant}"
    )
