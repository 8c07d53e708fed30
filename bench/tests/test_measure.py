# SPDX-License-Identifier: MIT
"""Which rounds are run, what is said meanwhile, and how a program's output is read."""

import re
from pathlib import Path

import pytest
from helpers import figures, write_raw
from runner import progress, tables
from runner.main import begin
from runner.measure import measure_all, run_job
from runner.model import Case, Job, Workload
from runner.options import parse
from runner.results import Figure
from runner.suites import SUITES


def job(name: str, implementation: str = "boxroot", once: bool = False) -> Job:
    return Job(Workload(name, "", ()), Case("", (), (implementation,), once=once), implementation)


def recorder(fails: tuple[str, ...] = ()):
    ran: list[tuple[int, str, str]] = []

    def run(j: Job, n: int) -> list[Figure]:
        ran.append((n, j.workload.name, j.implementation))
        if j.implementation in fails:
            raise RuntimeError("exit code 1: bad")
        return [Figure(n, *j.key[:2], j.implementation, "time", 1.0, "s")]

    return ran, run


def test_what_repeats_exactly_has_one_round():
    ran, run = recorder()
    measure_all([job("a"), job("b", once=True)], 3, run, lambda _: None)
    assert [name for _, name, _ in ran] == ["a", "b", "a", "a"]


def test_a_run_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    measure_all([job("a"), job("b")], 2, recorder()[1], lambda _: None)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4 and re.match(r"measuring, 3 of 4: round 2, a boxroot; \d:\d\d gone", said[2])
    monkeypatch.setattr(progress, "SECONDS", 1000.0)
    measure_all([job("a"), job("b")], 2, recorder()[1], lambda _: None)
    assert len(capsys.readouterr().err.splitlines()) == 1  # the first, and none within so many seconds


def test_rounds_alternate_in_order():
    jobs = [job("a", "x"), job("a", "y")]
    ran, run = recorder()
    measure_all(jobs, 2, run, lambda _: None)
    assert ran == [(0, "a", "x"), (0, "a", "y"), (1, "a", "y"), (1, "a", "x")]


def test_a_failure_is_kept_and_not_repeated():
    jobs = [job("a", "bad"), job("a", "good")]
    ran, run = recorder(fails=("bad",))
    kept: list[Figure] = []
    outcome = measure_all(jobs, 3, run, kept.extend)
    assert [r for r in ran if r[2] == "bad"] == [(0, "a", "bad")]
    assert len(kept) == 3 and outcome.absent[0].why == "failed: exit code 1: bad"


def keys(*arguments: str) -> set[tuple[str, str, str]]:
    options = parse(["--suite", "outheap", *arguments])
    return {(j.workload.name, j.case.label, j.implementation) for j in SUITES["outheap"].jobs(options)}


def test_quick_mode_has_what_is_compared_and_the_effects():
    small = keys("--only", "ocamlopt")
    assert {i for w, _, i in small if w == "ocamlopt"} == {"stock", "table", "outheap"}
    assert {w for w, _, _ in small} == {"ocamlopt", "ocamlopt, words"}  # minor heaps: in full mode
    assert ("ocamlopt", "66,000 lines", "jemalloc") in keys("--only", "ocamlopt", "--full")
    assert keys("--only", "ocamlopt", "--impl", "jemalloc") == set()  # which quick mode has in no case


def test_tables_repeat_cases_and_take_over_from_others():
    case = {"each": ["$two"], "by": [["x"]], "label": "%0, %2", "args": "run %1 {text}", "with": ["b", "$all"]}
    sets = {"two": [["one", "1"], ["two", "2"]], "all": ["c", "d"]}
    assert [(c.label, c.args, c.implementations) for c in tables.cases_of(case, sets)] == [
        (f"{word}, x", ("run", n, "{text}"), ("b", "c", "d")) for word, n in sets["two"]
    ]
    given = {"a": {"note": "n", "with": ["c"], "args": "1", "once": True}, "b": {"like": "a", "args": "2"}}
    (found,) = tables.workload("b", given, sets, {}).cases
    assert (found.args, found.implementations, found.once) == (("2",), ("c",), True)


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
