# SPDX-License-Identifier: MIT
"""Limits are for what hangs: a busy machine has more time. How tests are called, and what programs list."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from testing import run, steps
from testing.cases import Case, label_of, params, without_group
from testing.programs import list_of, words_of


def loads(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (each * (os.cpu_count() or 1), 0.0, 0.0))


def test_a_quiet_machine_has_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 0.3)
    outcome = run.run(["sleep", "60"], tmp_path, tmp_path / "log", 0.2)
    assert outcome.late and not outcome.passed and outcome.why == "not done after 0.2 s"
    assert outcome.code == -signal.SIGKILL
    assert re.search(r"^\d+ sleep: S .*, \d+ ticks$", outcome.text, re.M), outcome.text


def test_a_busy_machine_has_more_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 1e9)
    monkeypatch.setattr(run, "MOST", 1000.0)
    outcome = run.run(["sleep", "0.3"], tmp_path, tmp_path / "log", 0.1)
    assert outcome.passed, outcome.why


def test_what_hangs_ends_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 1e9)
    assert run.crowding() == run.MOST
    assert run.run(["sleep", "60"], tmp_path, tmp_path / "log", 0.1).late


def test_a_program_that_ends_is_not_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 0.0)
    outcome = run.run(["sh", "-c", "exit 3"], tmp_path, tmp_path / "log", 60)
    assert (outcome.code, outcome.late) == (3, False)


@pytest.mark.parametrize(
    ("node", "label"),
    [
        ("boxroot/test/test_programs.py::test_program[5.4.1-tiny unit/basics]", "boxroot[5.4.1-tiny] unit/basics"),
        ("rust/test/test_crate.py::test_message[5.4.1-no-ocaml]@rust-5.4.1", "rust[5.4.1] message/no-ocaml"),
        ("outheap/test/test_foreign.py::test_lazies[data-5.4.1-bytecode]", "outheap[5.4.1] lazies/data-bytecode"),
        ("examples/test_dune.py::test_toplevel[5.4.1+tsan]", "dune[5.4.1+tsan] toplevel"),
        ("docs/test_using.py::test_section[C++]", "docs[C++] section"),
        ("tools/testing/test_lint.py::test_lint[5.4.1 all]@lint", "lint[5.4.1] all"),
        ("tools/test_tools.py::test_other[5.3]", "tools/test_tools.py::test_other[5.3]"),
        ("outheap/test/test_marking.py::test_every_mutation_applies@x", "outheap/test/test_marking.py::"
         "test_every_mutation_applies"),
    ],
)  # fmt: skip
def test_labels(node: str, label: str) -> None:
    assert label_of(node) == label
    assert without_group(node) == node.partition("@")[0]


def test_a_list_names_cases_and_what_they_are(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho quick; echo other slow long\n")
    program.chmod(0o755)
    assert words_of(program) == {"quick": [], "other": ["slow", "long"]}
    assert list_of(program) == ["quick", "other"]


def test_what_cannot_be_listed_fails_by_itself() -> None:
    def listed() -> list[Case]:
        raise steps.BuildFailed("no such header")

    (param,) = params("outheap", "region", listed)
    assert param.values[0].error == "no such header" and param.id == "region build"


def test_marks_of_a_case() -> None:
    for case, marks in ((Case("p", "g", "n"), []), (Case("p", "g", "n", random=True, slow=True), ["random", "slow"])):
        assert [mark.name for mark in case.param().marks] == marks
