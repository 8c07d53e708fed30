# SPDX-License-Identifier: MIT
"""Limits are for what hangs: a busy machine has more time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from testing import run


def loads(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (each * (os.cpu_count() or 1), 0.0, 0.0))


def test_a_quiet_machine_has_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 0.3)
    start = time.monotonic()
    outcome = run.run(["sleep", "60"], tmp_path, tmp_path / "log", 0.2)
    assert outcome.late and not outcome.passed and outcome.why == "not done after 0.2 s"
    assert time.monotonic() - start < 30


def test_a_busy_machine_has_more_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 1e9)
    monkeypatch.setattr(run, "MOST", 1000.0)
    outcome = run.run(["sleep", "1"], tmp_path, tmp_path / "log", 0.1)
    assert outcome.passed, outcome.why


def test_what_hangs_ends_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 1e9)
    assert run.crowding() == run.MOST
    assert run.run(["sleep", "60"], tmp_path, tmp_path / "log", 0.1).late


def test_a_program_that_ends_is_not_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, 0.0)
    outcome = run.run(["sh", "-c", "exit 3"], tmp_path, tmp_path / "log", 60)
    assert (outcome.code, outcome.late) == (3, False)
