# SPDX-License-Identifier: MIT
"""The report and the comparison."""

import re
from html.parser import HTMLParser

import pytest
from helpers import figures, write_run
from runner import charts, compare, html, publish
from runner.main import write_report
from runner.options import parse
from runner.results import SERIES_FIELDS, Results, read_run
from runner.rows import rows
from runner.suites import SUITES
from runner.suites.outheap import execute

SUITE = SUITES["boxroot"]
INTEL = {"processor": "Intel(R) Xeon(R) Processor @ 2.80GHz"}
ALL = [
    *figures("perm_count", "time", [1.0, 1.1, 1.0] * 3, [2.0, 2.1, 2.0] * 3, "n=10", unit="s"),
    *figures("perm_count", "time", [0.8, 0.8, 0.8], [70.0], "n=10", names=("ocaml", "global"), unit="s"),
    *(
        f
        for percent in (50, 99.9, 100)
        for f in figures(
            "pause", f"distribution of pauses: {percent} %", [percent / 50], [percent], "5 M, shuffled", unit="ms"
        )
    ),
    *figures("pause", "worst pause", [3], [2], "5 M, shuffled", unit="ms"),
]


class Balanced(HTMLParser):
    VOID = {"meta", "line", "polyline", "link", "br", "path", "circle", "img"}

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture
def page(tmp_path):
    return html.page([(SUITE, read_run(write_run(tmp_path, "boxroot", ALL, {})))])


def test_the_page_is_whole_and_needs_nothing_else(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import|https?://(?!www\.w3\.org)", page)


def test_rivals_floors_and_curves_are_there(page):
    assert page.index("<summary>What 0.4.0 wins: 1 of 2 rows") < page.index("<summary>Programs: perm_count</summary>")
    assert '<span class="fl"' in page  # the floor's line
    assert page.count("<polyline") == 2  # the distribution of pauses, ours and theirs
    assert "<b>1.50</b>" in page  # what we lose


def ids(text):
    return re.findall(r' id="([^"]*)"', text)


def test_no_two_parts_have_one_name(tmp_path):
    """Runs of two machines, of a part with the name of a workload, and of a folder without the name of a machine."""
    places = [("amd-epyc-2", {}), ("intel-xeon-2", INTEL), ("amd-epyc-2-pause", {}), ("elsewhere/a/b", {})]
    runs = [read_run(write_run(tmp_path, "boxroot", ALL, facts, name=name)) for name, facts in places]
    text = html.page([(SUITE, run) for run in [*runs, runs[0]]])
    assert len(ids(text)) == len(set(ids(text))) == 5 * 3
    links = re.findall(r'<a href="#([^"]*)">([^<]*)</a>', text)
    assert len(links) == len({title for _, title in links}) == 5 and {a for a, _ in links} <= set(ids(text))
    assert [title for _, title in links][:3] == [
        "Boxroot, OCaml 5.4.1, AMD EPYC (2 cores)",
        "Boxroot, OCaml 5.4.1, Intel Xeon (2 cores)",
        "Boxroot, OCaml 5.4.1, AMD EPYC (2 cores): pause",
    ]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """The report of all that is recorded."""
    path = tmp_path_factory.mktemp("report") / "recorded.html"
    write_report([publish.RESULTS], path)
    return path.read_text()


def test_no_two_parts_of_the_recorded_report_have_one_name(recorded):
    assert ids(recorded) and len(ids(recorded)) == len(set(ids(recorded)))
    assert set(re.findall(r'href="#([^"]*)"', recorded)) <= set(ids(recorded))


def test_the_report_opens_with_what_matters(recorded):
    """At most ten plots, of each product; all others are folded."""
    parser = Balanced()
    parser.feed(recorded)
    assert parser.open == []
    before, after = recorded.split('<h2 class="all">')
    assert 8 <= before.count('<div class="bars">') <= html.MOST_FIRST and "<details" not in before
    assert all(f"{suite.title}, OCaml" in before for suite in SUITES.values())
    visible, folded = after, r"<details(?:(?!<details).)*?</details>"
    while re.search(folded, visible, re.S):
        visible = re.sub(folded, "", visible, flags=re.S)
    assert 'class="bars"' not in visible and "<svg" not in visible and after.count('class="bars"') > 100


def test_a_report_of_one_workload_opens_with_it(tmp_path):
    run = read_run(write_run(tmp_path, "boxroot", figures("perm_count", "time", [1, 1], [2, 2], "n=10", unit="s"), {}))
    before = html.page([(SUITE, run)]).split('<h2 class="all">')[0]
    assert before.count('<div class="bars">') == 1 and "perm_count: time" in before


def test_one_round_decides_nothing(tmp_path):
    one = [
        *figures("perm_count", "time", [1.0], [2.0], "n=10", unit="s"),
        *figures("perm_count", "time", [3.0], [], "n=10", names=("global", ""), unit="s"),
    ]
    assert [charts.shade(row) for row in rows(Results(one), SUITE)] == ["open"]
    run = read_run(write_run(tmp_path, "boxroot", one, {}))
    text = html.page([(SUITE, run)])
    assert not re.search(r'class="(win|lose)"', text) and 'class="star"' not in text.partition("<main>")[2]
    assert '<td class="open"><b>0.50</b></td><td class="dim">undecided</td>' in text and "1 rounds" not in text


def test_who_was_measured_once_takes_no_star_and_gives_none():
    panel = html.charts.panel(Results(ALL), SUITE, SUITE.workloads["perm_count"], "n=10", "time")
    assert [b.name for b in panel.bars if b.best] == ["boxroot"]  # `global` has one round
    best = [*ALL, *figures("perm_count", "time", [0.5], [], "n=10", names=("dll", ""), unit="s")]
    panel = html.charts.panel(Results(best), SUITE, SUITE.workloads["perm_count"], "n=10", "time")
    assert [b.name for b in panel.bars if b.best] == []


def test_every_empty_cell_has_a_reason(tmp_path):
    run = read_run(write_run(tmp_path, "boxroot", ALL, {}))
    coverage = html.coverage(run, SUITE)
    assert coverage.names == ["perm_count", "pause"]
    assert all(why for _, cells in coverage.rows for _, why in cells)


def test_the_winner_is_no_baseline():
    results = Results(ALL)
    panel = html.charts.panel(results, SUITE, SUITE.workloads["perm_count"], "n=10", "time")
    assert [b.name for b in panel.bars if b.best] == ["boxroot"]
    assert panel.bars[0].name == "ocaml" and panel.bars[0].kind == "floor"
    assert [b.name for b in panel.bars if b.cut] == ["global"]


def test_a_tie_has_two_winners():
    results = Results(figures("perm_count", "time", [1.0, 1.3, 1.1], [1.2, 1.0, 1.15]))
    panel = html.charts.panel(results, SUITE, SUITE.workloads["perm_count"], "", "time")
    assert sorted(b.name for b in panel.bars if b.best) == ["boxroot", "boxroot-0.4.0"]


def test_compare_finds_what_became_slower(tmp_path, capsys):
    old = write_run(tmp_path / "old", "boxroot", ALL, {})
    slower = [*figures("perm_count", "time", [3.0, 3.3, 3.0] * 3, [2.0, 2.1, 2.0] * 3, "n=10", unit="s")]
    new = write_run(tmp_path / "new", "boxroot", slower, {})
    assert compare.command(str(old), str(new)) == 0
    out = capsys.readouterr().out
    assert re.search(r"perm_count \(n=10\): time +1 +3 +3\.00  \*", out)
    assert compare.command(str(tmp_path / "old/bench/results"), str(tmp_path / "new/bench/results")) == 0


def test_compare_of_nothing_is_an_error(tmp_path):
    with pytest.raises(compare.BadFolder, match="neither a folder nor a commit"):
        compare.command("no-such-commit", str(tmp_path))


@pytest.mark.parametrize(
    "arguments",
    [["--check"], ["--budget", "-1"], ["--suite", "coq"], ["--record", "--out", "x"]],
)
def test_bad_options_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(arguments)
    assert stop.value.code == 2 and capsys.readouterr().err


def test_tables_name_only_what_exists():
    for suite in SUITES.values():
        known = set(suite.implementations)
        for workload in suite.workloads.values():
            assert all(i in known for c in workload.cases for i in c.implementations), workload.name
        assert {
            suite.ours,
            suite.base,
            *suite.floors.values(),
            *suite.beside,
            *suite.baselines,
            *suite.variants,
        } <= known
        assert {i for i, _ in suite.why_not} <= known
        assert set(suite.workloads) <= {w for names in suite.groups.values() for w in names}


def test_what_marking_skipped_is_drawn_slice_by_slice(tmp_path):
    text = "outheap: slice 1000 100 50 7\nnoise\n" + "outheap: slice 500 0 0 1\n" * 299 + "outheap: words_seen 9\n"
    found = execute.by_slice(text)
    shares, lines = found["skipped % over slices"], found["saved lines over slices"]
    assert len(shares) == len(lines) == 150
    assert shares[0] == (0, 10.0) and lines[0] == (0, 4.0) and shares[1] == (2, 0.0)
    folder = write_run(tmp_path, "outheap", figures("ocamlopt, words", "words seen", [1], [1], "x"), {})
    with (folder / "series.csv").open("w") as file:
        file.write(",".join(SERIES_FIELDS) + "\n")
        file.writelines(f'"ocamlopt, words",x,outheap-count,skipped % over slices,{x},{y}\n' for x, y in shares)
    (curves,) = charts.over_time(read_run(folder), SUITES["outheap"])
    assert (curves.x_title, curves.y_title) == ("slices", "%")
    assert len(curves.curves[0].points.split()) == 150
    assert execute.by_slice("nothing") == {"skipped % over slices": [], "saved lines over slices": []}


LANES = {
    "stock": {"minor collections": [(1, 2), (50, 3)], "major slices": [(3, 40)]},
    "helper": {"minor collections": [(1, 2)], "the helper marks": [(10, 80), (95, 5)]},
}


def with_lanes(tmp_path):
    some = figures("helper lanes", "a thousand calls: major slices", [1], [2], "a graph", names=("helper", "stock"))
    some += [
        f
        for percent in (50, 100)
        for f in figures(
            "helper", f"distribution of steps: {percent} %", [1], [2], "a graph", ("helper", "stock"), "ms"
        )
    ]
    folder = write_run(tmp_path, "outheap", some, {})
    with (folder / "series.csv").open("w") as file:
        file.write(",".join(SERIES_FIELDS) + "\n")
        for implementation, lanes in LANES.items():
            for name, stretches in lanes.items():
                file.writelines(f'"helper lanes",a graph,{implementation},lane: {name},{x},{y}\n' for x, y in stretches)
    return read_run(folder)


def test_a_time_line_has_a_lane_for_each_kind_of_work(tmp_path):
    run, suite = with_lanes(tmp_path), SUITES["outheap"]
    assert charts.over_time(run, suite) == []  # stretches are no curve
    assert charts.time_lines(run, suite, suite.workloads["helper"]) == []
    (drawn,) = charts.time_lines(run, suite, suite.workloads["helper lanes"])
    assert [(name, kind, [lane.name for lane in lanes]) for name, kind, _, lanes in drawn.groups] == [
        (name, kind, list(LANES[name])) for name, kind in (("stock", "base"), ("helper", "ours"))
    ]
    # All on one scale: 100 ms.
    scale = (drawn.width - drawn.left - drawn.right) / 100
    for name, _, _, lanes in drawn.groups:
        for lane in lanes:
            assert lane.stretches == [
                (pytest.approx(drawn.left + x * scale), pytest.approx(length * scale))
                for x, length in LANES[name][lane.name]
            ]
    below = [lane.y for _, _, _, lanes in drawn.groups for lane in lanes]
    assert below == sorted(set(below)) and below[-1] + 9 < drawn.height - drawn.bottom
    shades = {lane.name: lane.shade for _, _, _, lanes in drawn.groups for lane in lanes}
    assert len(set(shades.values())) == len(shades) == 3
    assert [text for _, text in drawn.ticks] == ["0", "20", "40", "60", "80", "100"]


def test_time_lines_and_pauses_are_in_the_report(tmp_path):
    run = with_lanes(tmp_path)
    page = html.page([(SUITES["outheap"], run)])
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert page.count('<figure class="lanes">') == 1 and page.count("h0.3v9") == 0
    assert page.count('<path class="lane') == 4 and ">the helper marks</text>" in page
    assert page.count("<polyline") == 2  # the distribution of steps, with the helper and without


def test_lanes_of_a_program_go_to_the_series(tmp_path, monkeypatch):
    text = "lane\tmajor slices\t0.500\t2.250\na thousand calls: major slices\t3\tms\nlane\tmajor slices\t9\t1\n"
    monkeypatch.setattr(execute, "run", lambda *_: execute.Ended(text, "", 0, 0, 0, 0, []))
    added = {}

    class Sink:
        add = staticmethod(added.__setitem__)

    assert execute.lanes(None, [], 1, Sink) == [("a thousand calls: major slices", 3.0, "ms")]
    assert added == {"lane: major slices": [(0.5, 2.25), (9.0, 1.0)]}
    assert execute.lanes(None, [], 1) == [("a thousand calls: major slices", 3.0, "ms")]


def test_a_run_is_of_the_suite_of_its_folder(tmp_path):
    """Also one in which neither of the two that are compared was measured."""
    some = figures("ocamlopt, minor heaps", "processor time", [1], [2], names=("minor-adaptive", "minor-8k"))
    run = read_run(write_run(tmp_path, "outheap", some, {}))
    assert compare.suite_of(run) is SUITES["outheap"]
