# SPDX-License-Identifier: MIT
"""The report and the comparison."""

import json
import re
from html.parser import HTMLParser

import pytest
from helpers import figures, write_run
from runner import compare, drawings, publish, report
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
    VOID = {"meta", "link", "br", "img", "rect", "input"}

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def whole(text):
    parser = Balanced()
    parser.feed(text)
    return parser.open == []


def charts_of(text):
    """The data of the drawings, and how often each is shown."""
    data = json.loads(re.search(r"^const charts = (\[.*\]), config = ", text, re.M)[1])
    assert sorted(map(int, re.findall(r'data-n="(\d+)"', text))) == list(range(len(data)))
    return data


@pytest.fixture
def run(tmp_path):
    return read_run(write_run(tmp_path, "boxroot", ALL, {}))


def test_the_page_is_whole_and_needs_nothing_else(run):
    text = report.page([(SUITE, run)], "const vegaEmbed = '</script>'")
    assert whole(text.replace("<\\/script>", ""))
    addresses = re.findall(r"https?://[^\"' ]*", text)
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import", text) and set(addresses) == {
        "https://vega.github.io/schema/vega-lite/v6.json"  # a name, which nobody fetches
    }
    marks = [next(iter(c.get("layer", [c])))["mark"]["type"] for c in charts_of(text)]
    assert marks == ["bar", "bar", "bar", "line"] and 'type="search"' in text  # first of all once more, pause's metric


def test_without_the_library_the_page_has_its_tables_and_says_so(run):
    text = report.page([(SUITE, run)], None)
    assert whole(text) and "The drawings are missing" in text and "data-n=" not in text
    assert "<b>1.50</b>" in text  # what we lose
    assert text.index("<summary>Where another is better: 1 of 2 rows") < text.index("<summary>Programs: perm_count</")


def ids(text):
    return re.findall(r' id="([^"]*)"', text)


def test_no_two_parts_have_one_name(tmp_path):
    """Runs of two machines, of a part with the name of a workload, and of a folder without the name of a machine."""
    places = [("amd-epyc-2", {}), ("intel-xeon-2", INTEL), ("amd-epyc-2-pause", {}), ("elsewhere/a/b", {})]
    runs = [read_run(write_run(tmp_path, "boxroot", ALL, facts, name=name)) for name, facts in places]
    text = report.page([(SUITE, run) for run in [*runs, runs[0]]], None)
    assert len(ids(text)) == len(set(ids(text))) == 5 * 3
    links = re.findall(r'<a href="#([^"]*)">([^<]*)</a>', text.split("<nav>")[1].split("</nav>")[0])
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawings, "with_library", lambda program: "library()")
        write_report([publish.RESULTS], path)
    return path.read_text()


def test_the_report_of_all_that_is_recorded(recorded):
    """It opens with at most ten plots, of each product; each workload has a link."""
    assert whole(recorded) and len(ids(recorded)) == len(set(ids(recorded)))
    links = set(re.findall(r'href="#([^"]*)"', recorded))
    assert links == set(ids(recorded))
    before, after = recorded.split('<h2 class="all">')
    assert 8 <= before.count("data-n=") <= report.MOST_FIRST and "<details" not in before
    assert all(f"{suite.title}, OCaml" in before for suite in SUITES.values())
    assert len(charts_of(recorded)) > 300
    visible, folded = after, r"<details(?:(?!<details).)*?</details>"
    while re.search(folded, visible, re.S):
        visible = re.sub(folded, "", visible, flags=re.S)
    assert "data-n=" not in visible


def test_a_report_of_one_workload_opens_with_it(tmp_path):
    run = read_run(write_run(tmp_path, "boxroot", figures("perm_count", "time", [1, 1], [2, 2], "n=10", unit="s"), {}))
    before = report.page([(SUITE, run)], "library()").split('<h2 class="all">')[0]
    assert before.count("data-n=") == 1 and "perm_count: n=10" in before


def bars(results, case="n=10"):
    return drawings.bars(results, SUITE, SUITE.workloads["perm_count"], case, "time")["data"]["values"]


def stars(some):
    return [bar["name"] for bar in some if "★" in bar["label"]]


def test_one_round_decides_nothing(tmp_path):
    one = [
        *figures("perm_count", "time", [1.0], [2.0], "n=10", unit="s"),
        *figures("perm_count", "time", [3.0], [], "n=10", names=("global", ""), unit="s"),
    ]
    assert [row.verdict for row in rows(Results(one), SUITE)] == ["open"] and stars(bars(Results(one))) == []
    text = report.page([(SUITE, read_run(write_run(tmp_path, "boxroot", one, {})))], None)
    assert not re.search(r'class="(win|lose)"', text) and "1 rounds" not in text
    assert '<td class="open"><b>0.50</b></td><td class="dim">undecided</td>' in text


def test_who_was_measured_once_takes_no_star_and_gives_none():
    assert stars(bars(Results(ALL))) == ["boxroot"]  # `global` has one round
    best = [*ALL, *figures("perm_count", "time", [0.5], [], "n=10", names=("dll", ""), unit="s")]
    assert stars(bars(Results(best))) == []


def test_every_empty_cell_has_a_reason(run):
    coverage = report.coverage(run, SUITE)
    assert coverage["names"] == ["perm_count", "pause"]
    assert all(why for _, cells in coverage["rows"] for mark, why in cells if mark != "●")
    assert ("boxroot", [("●", None), ("●", None)]) in coverage["rows"]


def test_bars_have_intervals_the_floor_and_an_end():
    first, ours, base, longest = bars(Results(ALL))
    assert (first["name"], first["colour"]) == ("ocaml", drawings.COLOURS["floor"])
    assert [bar["floor"] for bar in (first, ours, base, longest)] == [0.8] * 4
    assert (ours["low"], ours["high"]) == (1.0, 1.1) and "low" not in longest
    assert longest["cut"] and longest["end"] == pytest.approx(drawings.CLIP * 2.0) and not base["cut"]


def test_a_tie_has_two_winners():
    results = Results(figures("perm_count", "time", [1.0, 1.3, 1.1], [1.2, 1.0, 1.15]))
    assert sorted(stars(bars(results, ""))) == ["boxroot", "boxroot-0.4.0"]


def test_percentiles_lie_on_an_axis_of_what_remains():
    ((case, chart),) = drawings.distributions(Results(ALL), SUITE, SUITE.workloads["pause"])
    points = [(v["name"], v["x"], v["y"]) for v in chart["data"]["values"]]
    assert case == "5 M, shuffled" and chart["encoding"]["y"]["scale"] == {"type": "log"}
    assert [x for _, x, _ in points[:3]] == [0.30103, 3.0, 4.0] and points[2] == ("boxroot", 4.0, 2.0)
    assert chart["encoding"]["x"]["axis"]["values"] == [0.30103, 1.0, 2.0, 3.0, 4.0]


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
    [["--check"], ["--rounds", "many"], ["--suite", "coq"], ["--record", "--out", "x"]],
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
            *suite.effects.values(),
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
    (((_, case, _), chart),) = drawings.over_time(read_run(folder), SUITES["outheap"])
    assert (case, chart["encoding"]["x"]["title"], chart["encoding"]["y"]["title"]) == ("x", "slices", "%")
    assert len(chart["data"]["values"]) == 150
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
    assert drawings.over_time(run, suite) == []  # stretches are no curve
    assert drawings.time_lines(run, suite, suite.workloads["helper"]) == []
    ((case, chart),) = drawings.time_lines(run, suite, suite.workloads["helper lanes"])
    found: dict = {}
    for v in chart["data"]["values"]:
        found.setdefault(v["name"], []).append((v["x"], v["x2"] - v["x"]))
    assert case == "a graph"
    assert found == {f"{name}: {lane}": stretches for name in LANES for lane, stretches in LANES[name].items()}
    marks = [c.get("mark", {}).get("type") for c in charts_of(report.page([(suite, run)], "library()"))]
    assert marks.count("line") == 1 and marks[-1] == "bar"  # the distribution of steps; the time line


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
