# SPDX-License-Identifier: MIT
"""One rule of the helper (docs/internals/helper.md) is left out at a time. The programs of test_helper.py must
notice."""

from __future__ import annotations

import shutil

import pytest
import test_helper
from testing import compilers, matrix, steps
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, run

HOME = ROOT / "outheap"
OVERLAY = "runtime/overlay/ocaml5"
ROUNDS = 4  # on a busy machine a race can be missed for eight seconds
# A file, texts of it and what takes their places; the flavour, and the parts of the program that should notice.
BREAKAGES = {
    "markers-are-not-counted": (
        "helping.h", {"if (!oh_helping.counted) {\n    oh_store_relaxed(": "if (false) {\n    oh_store_relaxed("},
        "release", "graph lists",
    ),
    "marking-ends-while-the-helper-marks": (
        "helping.h", {"if (!oh_helping.busy && oh_helping.stack.count == 0 && oh_helping.inbox_count == 0 && ":
                      "if (oh_helping.stack.count == 0 && oh_helping.inbox_count == 0 && "},
        "release", "collections graph lists",
    ),
    "a-domain-takes-few-entries-in-a-slice": (
        "helping.h", {"= available ? OH_HELPING_GIVEN : 16 * OH_HELPING_GIVEN;": "= OH_HELPING_GIVEN;",
                      "    if (budget <= 0 || !d->marking_done || ": "    if (budget <= INTPTR_MAX || "},
        "release", "window",
    ),
    "helper-marks-continuations": (
        "mark_loop.h", {"if (helper) oh_mark_loop_defer(block);": "if (false) oh_mark_loop_defer(block);"},
        "release", "fibers",
    ),
    "finalisers-in-the-helper": (
        "sweep_queue.h", {"if (heap != &oh_sweeping_hands) return false;": "if (true) return false;"},
        "release", "customs custom finalisers",
    ),
    "swept-while-pools-are-not-collected": (
        "sweep_queue.h", {"bool over = q->in_hand == 0 && q->back == 0;": "bool over = q->in_hand == 0;"},
        "debug", "collections graph",
    ),
    "swept-while-pools-are-queued": (
        "sweep_queue.h", {"    if (p != NULL) {\n      p->next = q->queued[list];":
                          "    if (false) {\n      p->next = NULL;"},
        "debug", "collections graph",
    ),
    "statistics-are-lost": (
        "sweep_queue.h", {"  heap->stats.pool_live_words += q->stats.pool_live_words;\n": ""},
        "debug", "collections",
    ),
    "no-drain-at-shutdown": (
        "sweep_queue.h", {"  if (!q->handed) return;\n  oh_sweeping_lock();\n  CAMLassert(q->in_hand == 0);":
                          "  return;\n  oh_sweeping_lock();\n  CAMLassert(q->in_hand == 0);"},
        "release", "embed",
    ),
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    found = {c for c, f in matrix.variant(metafunc.config) if c.version.startswith(("5.4", "5.5"))}
    if "breakage" in metafunc.fixturenames:
        pairs = [pytest.param(c, b, id=f"{c.name}-{b}") for c in sorted(found, key=lambda c: c.name) for b in BREAKAGES]
        metafunc.parametrize(("compiler", "breakage"), pairs)


def test_every_breakage_applies() -> None:
    for name, (file, edits, *_) in BREAKAGES.items():
        for old in edits:
            assert (HOME / OVERLAY / file).read_text().count(old) == 1, (name, old)


@pytest.mark.everything
def test_breakage_is_noticed(compiler: Compiler, breakage: str) -> None:
    file, edits, flavour, parts = BREAKAGES[breakage]
    base = BUILD / f"{compiler.name}+outheap" / "breakages" / breakage
    shutil.rmtree(base, ignore_errors=True)
    for part in ("runtime", "include", "tool"):
        shutil.copytree(HOME / part, base / part)
    source = base / OVERLAY / file
    for old, new in edits.items():
        source.write_text(source.read_text().replace(old, new))
    library, folder = base / "library", base / "program"
    folder.mkdir()
    sources = compilers.toolchain("--source", compiler.version)
    words = [base / "tool/outheap-build", "--ocaml", compiler.prefix, "--sources", sources, "--self-test", "0"]
    steps.command([*words, "--output", library, "--flavours", flavour], base, compiler.settings)
    test_helper.build(compiler, flavour, folder, library)
    settings = {"OUTHEAP": test_helper.SETTING, "OCAMLRUNPARAM": "v=0,V=1,s=32k" if flavour == "debug" else "b,s=32k"}
    listed = run(["./soak", "--list"], folder, folder / "list.log", 60).text.split()
    for _ in range(ROUNDS):
        for part in parts.split():
            if part not in (*listed, "embed"):
                continue
            command = ["./soak_embed"] if part == "embed" else ["./soak", part, "--seconds", "8", "--no-weak"]
            setting = {"OUTHEAP": test_helper.OVERFLOWING} if part == "window" else {}
            if not run(command, folder, folder / f"{part}.log", 60, settings | setting).passed:
                return
    raise AssertionError(f"nothing misses {breakage}")
