# SPDX-License-Identifier: MIT
"""One rule of the helper (docs/internals/helper.md) is left out at a time. The programs of test_helper.py must
notice. And they must not, when it pauses and resumes as often as it can."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import test_helper
from testing import compilers, matrix, steps
from testing.compilers import Compiler
from testing.programs import words_of
from testing.run import BUILD, ROOT, run

HOME = ROOT / "outheap"
OVERLAY = "runtime/overlay/ocaml5"
ROUNDS = 4  # on a busy machine a race can be missed for eight seconds
# A file, texts of it and what takes their places; the parts of the program that should notice. What the marking loop or
# the pacer must be real for: the others are in test_helper_schedule.py.
BREAKAGES = {
    "a-domain-takes-few-entries-in-a-slice": (
        "helper_domain.h",
        {
            "= available ? OH_HELPER_GIVEN : 16 * OH_HELPER_GIVEN;": "= OH_HELPER_GIVEN;",
            "    if (budget <= 0 || !d->marking_done || ": "    if (budget <= INTPTR_MAX || ",
        },
        "window",
    ),
    "helper-marks-continuations": (
        "helper_thread.h",
        {".continuation = oh_helper_thread_defer,": ".continuation = caml_darken_cont,"},
        "fibers",
    ),
}

# It judges each batch, always finds that it had too little of a processor, and soon goes on.
RESTLESS = {
    "OH_HELPER_WINDOW = 20000000,": "OH_HELPER_WINDOW = 1000,",
    "OH_HELPER_PAUSE = 100000000,": "OH_HELPER_PAUSE = 20000,",
    "OH_HELPER_PAUSE_LOG_MOST = 5,": "OH_HELPER_PAUSE_LOG_MOST = 1,",
    "  if (oh_settings.helper == OH_SETTINGS_HELPER_AUTO)\n"
    "    oh_helper_thread_judge(window->cpu < window->wall / 8 * 5, ": "    oh_helper_thread_judge(true, ",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    found = {c for c, f in matrix.variant(metafunc.config) if c.version.startswith(("5.4", "5.5"))}
    if "breakage" in metafunc.fixturenames:
        pairs = [pytest.param(c, b, id=f"{c.name}-{b}") for c in sorted(found, key=lambda c: c.name) for b in BREAKAGES]
        metafunc.parametrize(("compiler", "breakage"), pairs)
    elif "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", sorted(found, key=lambda c: c.name), ids=lambda c: c.name)


def _built(compiler: Compiler, name: str, file: str, edits: dict[str, str], flavour: str) -> Path:
    """The folder of the programs, with a runtime that has these edits."""
    base = BUILD / f"{compiler.name}+outheap" / "breakages" / name
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
    return folder


def _parameters(flavour: str) -> str:
    return "v=0,V=1,s=32k" if flavour == "debug" else "b,s=32k"


def test_every_breakage_applies() -> None:
    for name, (file, edits, _) in (BREAKAGES | {"restless": ("helper_thread.h", RESTLESS, "")}).items():
        for old in edits:
            assert (HOME / OVERLAY / file).read_text().count(old) == 1, (name, old)


@pytest.mark.everything
def test_breakage_is_noticed(compiler: Compiler, breakage: str) -> None:
    file, edits, part = BREAKAGES[breakage]
    folder = _built(compiler, breakage, file, edits, "release")
    setting = test_helper.OVERFLOWING if part == "window" else test_helper.SETTING
    settings = {"OUTHEAP": setting, "OCAMLRUNPARAM": _parameters("release")}
    for _ in range(ROUNDS):
        command = ["./soak", part, "--seconds", "8", "--no-weak"]
        if not run(command, folder, folder / f"{part}.log", 60, settings).passed:
            return
    raise AssertionError(f"nothing misses {breakage}")


@pytest.mark.everything
@pytest.mark.parametrize("flavour", ["release", "debug"])
def test_pauses_are_not_noticed(compiler: Compiler, flavour: str) -> None:
    folder = _built(compiler, f"restless-{flavour}", "helper_thread.h", RESTLESS, flavour)
    settings = {"OUTHEAP": test_helper.SETTING + ",stats=exit", "OCAMLRUNPARAM": _parameters(flavour)}
    pauses = 0
    for part, about in words_of(folder / "soak").items():
        if "limited" in about:  # wants a limit on memory
            continue
        words = ["./soak", part, "--seconds", "2", "--no-weak"]
        outcome = run(words, folder, folder / f"{part}.log", 120, settings)
        assert outcome.passed, outcome.tail()
        pauses += sum(int(n) for n in re.findall(r"helper\.backed_off (\d+)", outcome.text))
    assert pauses > 1000, pauses
