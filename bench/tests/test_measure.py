# SPDX-License-Identifier: MIT
"""Which rounds are run: within a budget, after a failure, after an interruption. And how a program's output is read."""

from pathlib import Path

import pytest
from helpers import figures, write_raw
from runner.main import begin
from runner.measure import measure_all, run_job, schedule
from runner.model import Case, Job, Workload
from runner.results import Figure


def job(name: str, implementation: str = "boxroot", seconds: float = 1.0, once: bool = False) -> Job:
    return Job(Workload(name, "", ()), Case("", (), (implementation,), seconds=seconds, once=once), implementation)


def recorder(fails: tuple[str, ...] = ()):
    ran: list[tuple[int, str, str]] = []

    def run(j: Job, n: int) -> list[Figure]:
        ran.append((n, j.workload.name, j.implementation))
        if j.implementation in fails:
            raise RuntimeError("exit code 1: bad")
        return [Figure(n, *j.key[:2], j.implementation, "time", 1.0, "s")]

    return ran, run


def test_without_a_budget_every_round():
    jobs = [job("a"), job("b", once=True)]
    assert schedule(jobs, 5, float("inf")) == {jobs[0]: 5, jobs[1]: 1}


def test_a_budget_is_kept_and_shared():
    jobs = [job("short", seconds=1), job("long", seconds=20), job("too long", seconds=500)]
    number = schedule(jobs, 7, 60)
    assert sum(n * j.case.seconds for j, n in number.items()) <= 60
    assert number[jobs[0]] == 7 and 1 <= number[jobs[1]] < 7 and number[jobs[2]] == 0


def test_main_columns_get_more_rounds():
    ours, other = job("a", "boxroot", 10), job("a", "global", 10)
    number = schedule([other, ours], 9, 60, main=("boxroot",))
    assert number[ours] > number[other] > 0


def test_main_columns_have_an_interval_first():
    ours, other = job("a", "boxroot", 10), job("a", "global", 10)
    assert schedule([other, ours], 9, 45, main=("boxroot",)) == {ours: 3, other: 1}
    assert schedule([other, ours], 9, 20, main=("boxroot",)) == {ours: 1, other: 1}


def test_a_workload_has_main_columns_of_its_own():
    case = Case("", (), ("boxroot", "global"), seconds=10)
    ours, other = (Job(Workload("a", "", (), main=("global",)), case, i) for i in ("boxroot", "global"))
    assert schedule([ours, other], 9, 45, main=("boxroot",)) == {ours: 1, other: 3}


def test_every_case_has_its_main_columns_first():
    costly, cheap = job("costly", "boxroot", 30), [job("cheap", f"rival {i}", 2) for i in range(9)]
    number = schedule([*cheap, costly], 3, 40, main=("boxroot",))
    assert number[costly] == 1


def test_rounds_alternate_in_order():
    jobs = [job("a", "x"), job("a", "y")]
    ran, run = recorder()
    measure_all(jobs, 2, run, lambda _: None, quiet=True)
    assert ran == [(0, "a", "x"), (0, "a", "y"), (1, "a", "y"), (1, "a", "x")]


def test_a_failure_is_kept_and_not_repeated():
    jobs = [job("a", "bad"), job("a", "good")]
    ran, run = recorder(fails=("bad",))
    kept: list[Figure] = []
    outcome = measure_all(jobs, 3, run, kept.extend, quiet=True)
    assert [r for r in ran if r[2] == "bad"] == [(0, "a", "bad")]
    assert len(kept) == 3 and outcome.absent[0].why == "failed: exit code 1: bad"


def test_what_did_not_fit_says_so():
    jobs = [job("a", seconds=100)]
    ran, run = recorder()
    outcome = measure_all(jobs, 5, run, lambda _: None, 60, quiet=True)
    assert ran == [] and "did not fit" in outcome.absent[0].why


def test_what_turns_out_quick_gets_more_rounds():
    jobs = [job("a", seconds=40)]  # by the table; really nothing
    ran, run = recorder()
    measure_all(jobs, 5, run, lambda _: None, 60, quiet=True)
    assert len(ran) == 5


def test_a_run_begins_anew(tmp_path):
    write_raw(tmp_path / "raw.csv", figures("pair", "create", [1, 1], [2]))
    begin(tmp_path)
    assert not (tmp_path / "raw.csv").exists()


def script(folder: Path, text: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_figures_of_a_program(tmp_path):
    program = script(tmp_path, r"printf 'time\t1.5\ts\nwords\t3\t\n'")
    assert [(f.metric, f.value, f.unit) for f in run_job(job("a"), program, [], 4)] == [
        ("time", 1.5, "s"),
        ("words", 3.0, ""),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo broken >&2; exit 3", "exit code 3: broken"),
        ("echo nonsense", "ValueError"),
        ("kill -SEGV $$", "exit code -11"),
    ],
)
def test_a_bad_program(tmp_path, text, message):
    with pytest.raises(RuntimeError, match=message):
        run_job(job("a"), script(tmp_path, text), [], 0)
