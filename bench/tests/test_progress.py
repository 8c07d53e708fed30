# SPDX-License-Identifier: MIT
"""A run says how far it is."""

import io
import re
import time
from types import SimpleNamespace

import pytest
from helpers import figures
from runner import measure, progress
from runner.progress import Steps, clock
from runner.suites import SUITES


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0.05)


def until(out, pattern, times=1):
    """Waits for lines: a busy machine may take its time."""
    end = time.monotonic() + 120
    while len(re.findall(pattern, out.getvalue())) < times:
        assert time.monotonic() < end, f"no {pattern!r} in {out.getvalue()!r}"
        time.sleep(0.01)


def jobs():
    workload = SUITES["boxroot"].workloads["perm_count"]
    case = workload.cases[0]
    return [measure.Job(workload, case, i) for i in case.implementations[:2]]


def test_lines_without_a_terminal_come_also_during_a_step():
    out = io.StringIO()
    with Steps("building", 3, out=out) as steps:
        steps.start("one")
        until(out, r"building, 1 of 3: one \(\d+:\d\d\); \d+:\d\d gone\n", 2)
        steps.advance()
        steps.start("two")
        until(out, r"building, 2 of 3: two \(\d+:\d\d\); \d+:\d\d gone, about \d+:\d\d left\n", 2)


def test_measuring_says_what_and_how_far(monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)

    def run(job, n):
        at = 1 + 2 * n + (job != (jobs()[0] if n == 0 else jobs()[1]))
        until(said, rf"measuring, {at} of 4: round {n + 1}, perm_count .*{job.implementation}")
        return figures("perm_count", "time", [1], [])

    measure.measure_all(jobs(), 2, run, lambda _: None)


def test_a_terminal_that_moves_no_cursor_has_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    with Steps("building", 3, out=out) as steps:
        steps.start("one")
        until(out, "building, 1 of 3: one .*\n")


def test_a_terminal_has_a_bar_and_no_lines(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with Steps("building", 2, out=out) as steps:
        steps.start("one")
        until(out, "building: one")
        steps.advance()
        until(out, "50%")
    assert "50%" in out.getvalue() and "building, 1 of" not in out.getvalue()


def test_quiet_says_nothing(capfd):
    beside = io.StringIO()

    def run(job, n):
        with Steps("beside", 1, out=beside):
            until(beside, "beside, 1 to do", 4)
        return []

    measure.measure_all(jobs(), 1, run, lambda _: None, quiet=True)
    assert capfd.readouterr() == ("", "")


def test_who_reads_may_go():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with Steps("building", 1, out=Gone()) as steps:
        while steps.thread.is_alive():
            time.sleep(0.01)
        steps.start("one")


def test_the_time_that_is_left_is_that_of_the_rest(monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    steps = Steps("measuring", 4, 40.0, quiet=True)
    steps.start("a")
    steps.advance(10.0)
    now = 105.0
    assert steps.line().endswith("0:05 gone, about 0:15 left")
    steps.plan(1, 10.0)  # most of it does not fit
    assert re.match(r"measuring, 1 of 2: a .* about 0:05 left", steps.line())


def test_clock():
    assert [clock(s) for s in (0, 59.9, 60, 3601)] == ["0:00", "0:59", "1:00", "60:01"]
