# SPDX-License-Identifier: MIT
"""Bindings that were moved to Boxroot: they are built before and after the patch, pass their own tests, and what their
measuring programs compute is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from testing import matrix, sources
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, run

HOME = ROOT / "examples/bindings"
STATES = ("before", "after")
pytestmark = [pytest.mark.slow, pytest.mark.everything]  # minutes, and sources from Debian's archive
# What a small measurement prints: each name once.
MEASURED = {
    "ctypes": ("measure/roots.exe", ["20000"], ("create", "get", "set-young", "longest-pause", "release")),
    "lwt": ("measure/servers.exe", ["2000", "20"], ("timer-create", "timers-longest-pause", "message", "job-pread")),
    "libnbd": ("measure/handles.exe", ["2000"], ("callback-set", "callback-replace", "minor-median", "handle-close")),
    "pyml": ("measure/closures.exe", ["2000"], ("closure-create", "closure-call", "minor-median", "capsule-drop")),
}
# Programs that do not end well without the patch: always, in the versions of OCaml between these two; else sometimes.
FAULTS = {
    "libnbd": ("measure/finalisers.bc.exe", ["20"], ((5, 0), (5, 3))),
    "pyml": ("measure/finalisers.exe", ["20"], ((5, 0), (5, 3))),
}

# The newest OCaml that Debian's sources of a binding compile with, where that is not ours.
NEWEST = {"lwt": (5, 4)}  # lwt 5.6.1 declares `get_sockaddr`, a macro of <caml/socketaddr.h> since 5.5


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The newest version and 4.14.1 cost minutes each; those between differ in nothing that bindings see.
    params = [
        pytest.param(c, name, id=f"{c.name}-{name}", marks=pytest.mark.xdist_group(f"bindings-{c.name}-{name}"))
        for name in (FAULTS if "fault" in metafunc.function.__name__ else MEASURED)
        for c in matrix.ends(NEWEST.get(name, (99,)))
    ]
    metafunc.parametrize(("compiler", "name"), params)


def built(compiler: Compiler, name: str, *options: str) -> Path:
    """The folder of the binding."""
    words = [HOME / name / "build", *options, compiler.prefix]
    return sources.built(words, BUILD / compiler.name / f"binding-{name}.log")


def test_own_tests_pass(compiler: Compiler, name: str) -> None:
    assert (built(compiler, name, "--test") / "versions").exists()


def test_measuring_program_runs(compiler: Compiler, name: str) -> None:
    folder = built(compiler, name)
    program, arguments, expected = MEASURED[name]
    for state in STATES:
        outcome = run([folder / state / "_build/default" / program, *arguments], folder, folder / f"{state}.log", 120)
        assert outcome.passed, outcome.tail()
        names = [line.split()[0] for line in outcome.text.splitlines()]
        assert len(names) == len(set(names))
        assert set(expected) <= set(names)


def test_users_find_what_they_rely_on(compiler: Compiler, name: str) -> None:
    folder = built(compiler, name)
    for state in STATES:
        program = folder / state / "_build/default/measure/check.exe"
        outcome = run([program], folder, folder / f"{state}-check.log", 120)
        assert outcome.passed, outcome.tail()
        assert len(outcome.text.splitlines()) > 3, outcome.text


def test_faults_are_gone(compiler: Compiler, name: str) -> None:
    folder = built(compiler, name)
    program, arguments, versions = FAULTS[name]
    outcome = run([folder / "after/_build/default" / program, *arguments], folder, folder / "after-fault.log", 120)
    assert outcome.passed, outcome.tail()
    version = tuple(map(int, compiler.version.split(".")[:2]))
    if versions and versions[0] <= version <= versions[1]:
        outcome = run([folder / "before/_build/default" / program, *arguments], folder, folder / "fault.log", 120)
        assert not outcome.passed
