# SPDX-License-Identifier: MIT
"""Ratios, their intervals, distances, and files of figures."""

import math

import pytest
from helpers import FACTS, figures, write_run
from runner.machine import short_name, warnings
from runner.model import Absence
from runner.results import (
    BadFolder,
    RawFile,
    Results,
    bootstrap,
    pack,
    ratio_of,
    read_figures,
    read_run,
    run_paths,
    write_absent,
)
from runner.verdicts import Verdict, distance


def rounds(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_ratio_of_medians_over_all_rounds():
    assert ratio_of(rounds(1, 1, 9), rounds(2, 2, 2)).value == 0.5
    assert ratio_of(rounds(1), rounds(2)).low is None
    assert ratio_of({}, rounds(2)) is None


def test_memory_that_shrinks():
    assert ratio_of(rounds(5), rounds(0)).value == math.inf
    assert ratio_of(rounds(-1), rounds(0)).value == 1.0
    assert ratio_of(rounds(-1, -1), rounds(4, 4)).value == 0.0


def test_the_interval_is_that_of_the_data_and_repeats():
    ours, theirs = (1.0, 1.1, 0.9, 1.05, 1.0), (2.0, 2.2, 1.9, 2.0, 2.1)
    low, high = bootstrap(ours, theirs)
    assert low < 0.5 < high and high - low < 0.2
    bootstrap.cache_clear()
    assert bootstrap(ours, theirs) == (low, high)


def test_drift_that_both_share_does_not_widen_the_interval():
    drift = [1, 2, 3, 4, 5]
    r = ratio_of(rounds(*drift), rounds(*(2 * d for d in drift)))
    assert (r.low, r.value, r.high) == (0.5, 0.5, 0.5)


def test_noise_is_not_beyond_doubt():
    assert not ratio_of(rounds(1, 3, 2), rounds(2, 2, 2)).sure
    assert ratio_of(rounds(1, 1.1, 1.2), rounds(2, 2.1, 2)).sure


@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "expected", "at_floor"),
    [(3, 5, 1, 0.5, False), (1.01, 5, 1, 0.0025, True), (0.9, 5, 1, 0.0, True), (3, 1, 1, math.inf, False)],
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
    assert Verdict("", 7.0, 1.0, at_floor=True).reached
    assert not Verdict("", 1.01, 1.0).reached


def test_figures_come_back_as_they_were_written(tmp_path):
    written = [*figures("pair", "create, all", [1.5, 2.25], [3.0], case='a "case", odd')]
    raw = RawFile(tmp_path / "raw.csv")
    raw.append(written[:1])
    raw.close()
    raw = RawFile(tmp_path / "raw.csv")  # as --resume does
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
