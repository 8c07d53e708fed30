# SPDX-License-Identifier: MIT
"""The suite of the safe Rust layer: every implementation gives the same results, and the figures are what they say."""

import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import figures
from runner.fetch import FetchError
from runner.model import Job
from runner.results import Results
from runner.suites.rust import build, client, counts
from runner.suites.rust.names import BASE, INTEROP, OCAML, OURS
from runner.suites.rust.suite import SUITE
from runner.verdicts import check, unmeasured

IMPLEMENTATIONS, WORKLOADS = SUITE.implementations, SUITE.workloads
CRATES = (OURS, INTEROP, OCAML)

# Short, but with all that the programs check.
RUNS = {
    "local_roots": ["0.001", "1"],
    "perm_count": ["7", "persistent"],
    "conversion": ["time", "1000", "0.001"],
    "calls": ["time", "0.001"],
}
VALGRIND = shutil.which("valgrind")


@pytest.fixture(scope="module")
def builder(compiler, tmp_path_factory) -> build.Builder:
    return build.Builder(compiler, tmp_path_factory.mktemp("rust"), IMPLEMENTATIONS)


def program(builder: build.Builder, workload: str, implementation: str) -> Path:
    if implementation != BASE and not shutil.which("cargo"):
        pytest.skip("cargo is missing")
    w = WORKLOADS[workload]
    try:
        return builder.program(Job(w, w.cases[0], implementation))
    except FetchError as error:
        pytest.skip(str(error))


def run(path: Path, arguments: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=900)


def case(workload: str, implementation: str):
    """Crates take long to build."""
    is_quick = workload == "conversion" and implementation == BASE
    return pytest.param(workload, implementation, marks=[] if is_quick else pytest.mark.slow)


@pytest.mark.parametrize(("workload", "implementation"), [case(w, i) for w in RUNS for i in IMPLEMENTATIONS])
def test_every_implementation_gives_the_same_results(workload, implementation, builder):
    done = run(program(builder, workload, implementation), RUNS[workload])
    assert done.returncode == 0, done.stderr
    assert all(len(line.split("\t")) == 3 for line in done.stdout.splitlines()) and done.stdout


@pytest.mark.parametrize(
    ("file", "right", "wrong", "workload", "message"),
    [
        ("c/calls_stubs.c", "return x + 1", "return x + 2", "calls", "write_float: wrong result"),
        pytest.param(
            "c/calls_stubs.c", "f == g", "f != g", "calls", "read_closure: wrong result", marks=pytest.mark.slow
        ),
        ("c/conversion_stubs.c", "caml_copy_double(from->weight)", "caml_copy_double(0)", "conversion", "records of 1"),
    ],
)
def test_a_wrong_result_is_found(file, right, wrong, workload, message, compiler, tmp_path, monkeypatch):
    shutil.copytree(build.RIVALS, tmp_path / "rivals")
    path = tmp_path / "rivals" / "rust" / file
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, wrong))
    monkeypatch.setattr(build, "RIVALS", tmp_path / "rivals")
    done = run(program(build.Builder(compiler, tmp_path, IMPLEMENTATIONS), workload, BASE), RUNS[workload])
    assert done.returncode == 1 and message in done.stderr


@pytest.mark.skipif(not VALGRIND, reason="valgrind is missing")
def test_counts_are_of_one_operation_and_repeat(builder):
    path = program(builder, "calls", BASE)
    first, second = ({n: v for n, v, _ in counts.between_marks(path, ["count"], 60)} for _ in range(2))
    assert first["no access, int"] == second["no access, int"]
    assert 5 < first["no access, int"] < 40 < first["closure called"] < 400
    assert first["attached"] > first["closure called"]


def test_counts_without_a_total_are_an_error(tmp_path):
    (tmp_path / "out.2").write_text("events: Ir\n")
    with pytest.raises(RuntimeError, match=r"out\.2 has no total"):
        counts.total(tmp_path / "out.2")


@pytest.mark.parametrize("library", CRATES)
def test_the_client_has_what_it_says(library):
    text = client.source(library)
    assert text.count("\npub fn client_") == client.FUNCTIONS == 200
    assert text.count("\npub struct ") + text.count("\npub enum ") == client.RECORDS + client.VARIANTS == 50


def test_each_cell_has_a_case_or_a_reason():
    for name, workload in WORKLOADS.items():
        for i in IMPLEMENTATIONS:
            assert any(i in c.implementations for c in workload.cases) or (i, name) in SUITE.why_not, (name, i)


def beside(workload: str, metric: str, ours: float, theirs: float, base: str = BASE, unit: str = "ns"):
    return figures(workload, metric, [ours, ours], [theirs, theirs], names=(OURS, base), unit=unit)


def verdicts(*some, version="5.4.1"):
    return {v.name: v for v in check(SUITE, Results([f for figures_ in some for f in figures_]), version)}


def test_depths_are_averaged_and_one_has_its_own_bound():
    found = verdicts(*(beside("local_roots", f"N={n}", ours, 100) for n, ours in ((1, 108), (10, 100), (100, 120))))
    mean = found["local_roots: mean of N=*, beside c"]
    assert mean.figure == pytest.approx((1.08 * 1.2) ** (1 / 3)) and not mean.reached
    assert set(found) == {mean.name, "local_roots: N=1, beside c"} and found["local_roots: N=1, beside c"].reached


def test_processor_time_is_no_time():
    times = [beside("clean build", m, 3, 2, INTEROP, "s") for m in ("time", "processor time")]
    found = verdicts(*times, beside("clean build", "crates", 11, 13, INTEROP, "crates"))
    assert set(found) == {f"clean build: time, beside {INTEROP}", "clean build: crates, crates"}
    assert found["clean build: crates, crates"].figure == 11 and not found["clean build: crates, crates"].reached


def test_directions_of_conversion_have_their_bounds():
    some = [beside("conversion", f"int list {d} OCaml", 0.7, 1, r) for d in ("from", "to") for r in (INTEROP, OCAML)]
    found = verdicts(*some)
    assert {name: v.reached for name, v in found.items()} == {
        f"conversion: int list {d} OCaml, beside {r}": d == "from" for r in (INTEROP, OCAML) for d in ("from", "to")
    }
    assert not any(INTEROP in name for name in verdicts(*some, version="4.14.1"))


def test_what_is_missing_is_named():
    some = Results([*beside("calls", "attached", 1, 1), *beside("perm_count", "time", 1, 1)])
    assert "calls: lock released" in unmeasured(SUITE, some, "5.4.1")
    assert unmeasured(SUITE, some, "5.4.1").count("perm_count: time") == 1  # beside the crates
    assert not any("clean build" in name for name in unmeasured(SUITE, some, "5.4.1"))
