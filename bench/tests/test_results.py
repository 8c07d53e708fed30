# SPDX-License-Identifier: MIT
"""Ratios, their intervals, distances, and files of figures."""

import math
import random

import pytest
from compare.intervals import ENOUGH
from helpers import FACTS, figures, write_run
from runner.machine import short_name, warnings
from runner.model import Absence
from runner.results import (
    BadFolder,
    Ratio,
    RawFile,
    Results,
    beyond_doubt,
    pack,
    ratio_of,
    ratio_of_runs,
    read_figures,
    read_run,
    run_paths,
    write_absent,
)
from runner.text import interval
from runner.verdicts import Verdict, distance


def rounds(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_ratio_of_medians_over_all_rounds():
    assert ratio_of(rounds(1, 1, 9), rounds(2, 2, 2)).value == 0.5
    assert ratio_of({}, rounds(2)) is None and ratio_of({1: 1.0}, {2: 1.0}) is None
    assert ratio_of({0: 1.0, 1: 9.0}, {0: 2.0}) == ratio_of(rounds(1), rounds(2))


def test_memory_that_shrinks():
    assert ratio_of(rounds(5), rounds(0)).value == math.inf
    assert ratio_of(rounds(-1), rounds(0)).value == 1.0
    assert ratio_of(rounds(-1, -1), rounds(4, 4)).value == 0.0


def test_few_rounds_decide_nothing():
    few = ratio_of(rounds(*[1] * (ENOUGH - 1)), rounds(*[2] * (ENOUGH - 1)))
    assert few.low is None and not few.sure and interval(few) == "undecided"
    assert ratio_of(rounds(*[1] * ENOUGH), rounds(*[2] * ENOUGH)).sure


def test_equal_programs_are_seldom_found_different():
    """The interval of one pair excludes 1 in at most 5 % of runs, and that of a row of a page in as many pages."""
    draw = random.Random(1)
    noise = lambda n: rounds(*(draw.lognormvariate(0, 0.1) for _ in range(n)))  # noqa: E731
    pages = [[ratio_of(noise(9), noise(9)) for _ in range(100)] for _ in range(100)]
    singly, together = (
        sum(map(found, pages)) for found in (lambda p: sum(r.sure for r in p), lambda p: any(beyond_doubt(p)))
    )
    assert 200 < singly < 500 and together <= 8, (singly, together)


def test_differences_of_a_page_are_found():
    lower, equal = ratio_of(rounds(*[1] * 9), rounds(*[2] * 9)), ratio_of(rounds(*[1, 3] * 5), rounds(*[2] * 10))
    assert beyond_doubt([lower] * 10 + [equal] * 90) == [True] * 10 + [False] * 90
    assert beyond_doubt([lower] + [equal] * 200) == [False] * 201  # one in 512, by chance, among 201
    assert beyond_doubt([]) == []


def test_what_repeats_exactly_needs_one_round():
    def of(unit: str) -> Ratio:
        some = figures("pair", "delete", [90], [100], unit=unit)
        return Results(some).ratio("pair", "", "delete", "boxroot", "boxroot-0.4.0")

    assert of("instructions").sure and interval(of("instructions")) == "exact"
    assert not of("ns").sure


def test_runs_of_different_days_are_not_paired():
    r = ratio_of_runs(rounds(*range(11, 19)), rounds(*range(21, 29)))
    assert r.value == 14.5 / 24.5 and (r.low, r.high) == (11 / 28, 18 / 21)
    assert ratio_of_runs(rounds(*[1] * 6), rounds(*[2] * 9)).low is None and ratio_of_runs({}, rounds(1)) is None


def test_drift_that_both_share_does_not_widen_the_interval():
    drift = [1, 2, 3, 4, 5, 6]
    r = ratio_of(rounds(*drift), rounds(*(2 * d for d in drift)))
    assert (r.low, r.value, r.high) == (0.5, 0.5, 0.5)


def test_noise_is_not_beyond_doubt():
    assert not ratio_of(rounds(1, 3, 2), rounds(2, 2, 2)).sure
    assert not ratio_of(rounds(*range(1, 9)), rounds(*range(8, 0, -1))).sure


@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "expected", "at_floor"),
    [(3, 5, 1, 0.5, False), (1.01, 5, 1, 0.0025, True), (0.9, 5, 1, 0.0, True), (3, 1, 1, 3.0, False)],
)
def test_distance_to_the_floor(ours, theirs, floor, expected, at_floor):
    results = Results(
        [
            *figures("synthetic", "time", [ours], [theirs]),
            *figures("synthetic", "time", [floor], [], names=("ocaml", "")),
        ]
    )
    d = distance(results, "synthetic", "", "time", "boxroot", "boxroot-0.4.0", "ocaml")
    assert d.value == pytest.approx(expected) and d.at_floor == at_floor
    assert distance(results, "synthetic", "", "time", "boxroot", "boxroot-0.4.0", "nobody") is None


def test_a_target_is_reached_at_the_floor():
    assert Verdict("", "", "", "", 7.0, 1.0, at_floor=True).reached
    assert not Verdict("", "", "", "", 1.01, 1.0).reached


def test_figures_come_back_as_they_were_written(tmp_path):
    written = [*figures("pair", "create, all", [1.5, 2.25], [3.0], case='a "case", odd')]
    raw = RawFile(tmp_path / "raw.csv")
    raw.append(written[:1])
    raw.close()
    raw = RawFile(tmp_path / "raw.csv")
    raw.append(written[1:])
    raw.close()
    with (tmp_path / "raw.csv").open(newline="") as file:
        assert read_figures(file) == written


def test_a_line_cut_off_by_an_interruption_is_dropped(tmp_path):
    raw = RawFile(tmp_path / "raw.csv")
    raw.append(figures("pair", "create", [1.5], [3.0]))
    raw.close()
    whole = (tmp_path / "raw.csv").read_text()
    (tmp_path / "raw.csv").write_text(whole + "1,pair,,boxro")
    RawFile(tmp_path / "raw.csv").close()
    assert (tmp_path / "raw.csv").read_text() == whole


def test_a_broken_folder_is_an_error_with_its_name(tmp_path):
    folder = write_run(tmp_path, "boxroot", [], {})
    (folder / "raw.csv").write_text("round,nonsense\n1,2\n")
    with pytest.raises(BadFolder, match="amd-epyc-2 cannot be read"):
        read_run(folder)


def test_a_run_is_the_same_once_it_is_packed(tmp_path):
    facts = {**FACTS, "processor": "Größe"}
    folder = write_run(tmp_path, "boxroot", figures("pair", "create", [1.5, 2], [3], case='a "case", odd'), facts)
    write_absent(folder / "absent.csv", [Absence("pair", "", "global", "no reason")])
    (folder / "series.csv").write_text("workload,case,implementation,series,x,y\npair,,boxroot,MB over s,1,2\n")
    before = read_run(folder)
    contents = {p.name: p.read_bytes() for p in folder.iterdir()}
    packed = pack(folder)
    assert not folder.exists() and run_paths(tmp_path) == run_paths(packed) == [packed]
    after = read_run(packed)
    assert (after.results.figures, after.results.absent) == (before.results.figures, before.results.absent)
    assert (after.facts, after.series, after.name) == (before.facts, before.series, before.name)
    once = packed.read_bytes()
    folder.mkdir()
    for name in reversed(contents):  # another order, another time
        (folder / name).write_bytes(contents[name])
    assert run_paths(tmp_path) == [folder]  # measured again: the newer one
    assert pack(folder).read_bytes() == once


def test_a_broken_archive_is_an_error_with_its_name(tmp_path):
    packed = pack(write_run(tmp_path, "boxroot", figures("pair", "create", [1], [2]), {}))
    whole = packed.read_bytes()
    for bad in (whole[: len(whole) // 2], b"", b"nonsense", whole[:40] + b"x" + whole[41:]):
        packed.write_bytes(bad)
        with pytest.raises(BadFolder, match="amd-epyc-2.tar.xz cannot be read"):
            read_run(packed)


def test_what_is_not_for_the_record():
    assert warnings(FACTS) == []
    assert "busy" in warnings({**FACTS, "load before": "1.5"})[0]
    assert "30%" in warnings({**FACTS, "others before": "2%", "others during": "30%"})[0]
    assert "uncommitted" in warnings({**FACTS, "commit": "abc, with uncommitted changes"})[0]
    assert "interrupted" in warnings({**FACTS, "complete": "no"})[0]


def test_a_machine_has_a_short_name():
    assert short_name({"processor": "AMD EPYC", "cores": "2"}) == "amd-epyc-2"
    assert (
        short_name({"processor": "Intel(R) Core(TM) i7-1185G7 CPU @ 3.00GHz", "cores": "8"}) == "intel-core-i7-1185g7-8"
    )
    assert short_name({}) == "unknown"
