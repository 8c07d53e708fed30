# SPDX-License-Identifier: MIT
"""Budgets of processor time, and tests that are flaky."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from testing import flaky, spent, steps
from testing.run import ROOT

BUDGETS = spent.Budgets(work=0.01, elsewhere=10.0, groups={"a/test_a.py": 20.0, "b/test_b.py": 2.0})


def used(piece: float, **seconds: float) -> spent.Spent:
    found = spent.Spent(pieces=[piece])
    for name, each in seconds.items():
        found.add(f"{name}/test_{name}.py", name, each)
    return found


def test_what_uses_more_than_its_budget_is_named() -> None:
    assert BUDGETS.outgrown(used(0.01, a=59.0, b=32.0)) == []
    (line,) = BUDGETS.outgrown(used(0.01, a=61.0, b=32.0))
    assert line.startswith("a/test_a.py: 61 s of processor time; its budget is 20,")


def test_a_slower_machine_has_more() -> None:
    assert BUDGETS.outgrown(used(0.02, a=119.0)) == []
    assert len(BUDGETS.outgrown(used(0.005, a=61.0))) == 1  # a faster one has no less


def test_a_new_group_needs_a_budget() -> None:
    assert len(BUDGETS.outgrown(used(0.01, c=spent.SECONDS_MORE + 1))) == 1
    assert BUDGETS.outgrown(used(0.01, c=spent.SECONDS_MORE - 1)) == []


def test_a_group_is_a_file_or_a_flavour() -> None:
    node = "boxroot/test/test_programs.py::test_program[5.4.1-tiny unit/basics]"
    assert spent.group_of("boxroot[5.4.1-tiny] unit/basics", node) == "boxroot/test/test_programs.py tiny"
    assert spent.group_of("rust[5.4.1] native", "rust/tests/test_exports.py::test_native[5.4.1]") == "rust"
    assert spent.group_of("docs[C++] section", "docs/test_start.py::test_section[C++]") == "docs/test_start.py"


def test_what_is_built_is_no_test_s(tmp_path: Path) -> None:
    """Also where one build is part of another."""

    def work() -> None:
        until = spent.used() + 0.2
        while spent.used() < until:
            pass

    before, before_tests = spent.used(), spent.used_by_tests()
    inner = lambda: steps.step(tmp_path / "inner", [], [], work)
    steps.step(tmp_path / "outer", [], [], lambda: (inner(), work()))
    assert spent.used() - before >= 0.4
    assert spent.used_by_tests() - before_tests < 0.2


def test_budgets_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spent, "BUDGETS", tmp_path / "budgets.toml")
    found = used(0.01, a=3.0, b=4.0)
    found.total = 17.0
    found.record()
    assert spent.budgets() == spent.Budgets(0.01, 10.0, {"a/test_a.py": 3.0, "b/test_b.py": 4.0})


FROM_NOTHING = r"(\d+) minutes\s+(?:#\s+)?from nothing"


@pytest.mark.parametrize(
    ("what", "texts"),
    [
        ("test", {"Makefile": r"^test: .*?(\d+) minutes", "CONTRIBUTING.md": r"make test .*\n.*?(\d+) minutes"}),
        ("ci", dict.fromkeys((".ci/run", "CONTRIBUTING.md", "docs/internals/testing.md"), FROM_NOTHING)),
    ],
)
def test_texts_say_how_long_runs_take(what: str, texts: dict[str, str]) -> None:
    """All the same, and what the last recorded run took, rounded up, or up to a third more."""
    took = tomllib.loads(spent.MINUTES.read_text())[what]
    for name, pattern in texts.items():
        (said,) = re.findall(pattern, (ROOT / name).read_text(), re.MULTILINE)
        assert took <= int(said) <= took * 4 / 3, f"{name} says {said} minutes, the last recorded run took {took}"


def test_what_is_flaky_twice_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOXROOT_CACHE", str(tmp_path))
    assert flaky.again({"a", "b"}, {"c"}) == set()
    assert flaky.again({"a"}, {"c"}) == {"a"}  # b was not run
    assert flaky.again({"b"}, {"a"}) == {"b"}
    assert flaky.again({"a"}, {"b"}) == set()
    assert flaky.again({"a", "b"}, set()) == {"a"}


TESTS = """
import pathlib
def once(name):
    file = pathlib.Path(name)
    there = file.exists()
    file.touch()
    return there
def test_flaky(): assert once("flaky")
def test_steady(): pass
"""
FLAKY = "docs/test_short.py::test_flaky"


def test_a_run_names_what_is_flaky(tmp_path: Path) -> None:
    """And fails the second time."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "test_short.py").write_text(TESTS)
    for name in ("conftest.py", "pyproject.toml", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    settings = {"BOXROOT_CACHE": str(tmp_path / "cache"), "BUILD": str(tmp_path / "build"), "PATH": "/usr/bin:/bin"}
    (tmp_path / "ocaml/bin").mkdir(parents=True)
    (tmp_path / "ocaml/bin/ocamlopt.opt").write_text("#!/bin/sh\necho 5.5.2\n")
    (tmp_path / "ocaml/bin/ocamlopt.opt").chmod(0o755)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--ocaml", str(tmp_path / "ocaml"), "docs"]
    for is_flaky, failed in ((True, 0), (True, 1), (False, 0), (True, 0)):
        if is_flaky:
            (tmp_path / "flaky").unlink(missing_ok=True)
        done = subprocess.run(words, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == failed, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == f"2 passed, {failed} failed"
        assert (f"flaky: {FLAKY} failed once" in done.stdout) == is_flaky
