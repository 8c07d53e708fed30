# SPDX-License-Identifier: MIT
"""What is published is what the raw data say."""

import re
from pathlib import Path

import pytest
from helpers import FACTS, figures, write_run
from runner import drawings, publish
from runner.results import Results, archive_of, read_run
from runner.rows import chosen_rows, groups, rows
from runner.suites import SUITES
from runner.text import amounts, times

SUITE = SUITES["boxroot"]
ALL = [
    *figures("pair", "create+delete, batch 1", [1, 1, 2] * 3, [2, 2, 2] * 3),
    *figures("pair", "create+delete, batch 10", [3, 4, 5] * 3, [2, 2, 2] * 3),
    *figures("release", "resident: compacted once", [5], [0]),
    *figures("release", "resident: all deleted, compacted", [-1], [0]),
    *figures("crowd", "values lost", [0], [7], "16 domains"),
    *figures("crowd", "longest round", [9], [3], "16 domains"),
    *figures("churn", "modify: major collections", [9], [3], "2 M"),
    *figures("pair", "gc: top heap", [9], [3]),
]
ROWS = rows(Results(ALL), SUITE)
HEADLINE = """
[boxroot]
title = "roots"
implementations = { "boxroot" = "Boxroot", "boxroot-0.4.0" = "0.4.0", "generational" = "OCaml's roots" }
[[boxroot.rows]]
what = "ten at a time"
figure = ["pair", "", "create+delete, batch 10"]
why = "stubs"
[[boxroot.rows]]
what = "one"
figure = ["pair", "", "create+delete, batch 1"]
why = "calls"
[[boxroot.rows]]
what = "not recorded yet"
figure = ["closures", "300,000 closures", "add"]
why = "new"
implementations = ["boxroot", "boxroot-0.4.0", "generational_in_place"]
[outheap]
title = "heaps"
implementations = { "outheap" = "Outheap", "stock" = "stock runtime" }
[[outheap.rows]]
what = "compiling"
figure = ["ocamlopt", "", "processor time"]
why = "a program"
"""
SUITE_OF_PAIR = next(title for title, workloads in SUITE.groups.items() if "pair" in workloads)


def row(text: str):
    return next(r for r in ROWS if text in r.name)


def test_what_another_wins_comes_first():
    ratios = [r.best.ratio.value for r in ROWS]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] == float("inf")  # it keeps memory, the rival none


def test_every_figure_of_which_less_is_better():
    assert len(ROWS) == 6  # neither collections nor what begins with gc:


def test_ratio_of_medians():
    r = row("batch 10")
    assert (r.ours, r.best.value, r.best.ratio.value, r.best.ratio.rounds) == (4, 2, 2, 9)
    assert r.verdict == "lost" and r.best.ratio.low >= 1.5 and r.best.ratio.high <= 2.5


def test_a_loss_to_any_of_the_others_is_a_loss():
    """Not to a floor, nor to a variant of ours."""
    some = figures("pair", "modify", [2] * 9, [4] * 9)
    for name, verdict in (("floor", "won"), ("thread_unsafe", "won"), ("rem", "lost"), ("global", "lost")):
        others = figures("pair", "modify", [1] * 9, [], names=(name, ""))
        (found,) = rows(Results([*some, *others]), SUITE)
        assert found.verdict == verdict and (found.best.name == name) == (verdict == "lost")
    once = figures("pair", "modify", [9], [], names=("global", ""))
    assert [r.verdict for r in rows(Results([*some, *once]), SUITE)] == ["open"]  # one round does not decide


def test_effects_stand_apart():
    suite, names = SUITES["outheap"], ("outheap", "stock")
    some = figures("ocamlopt", "processor time", [6] * 9, [10] * 9, names=names)
    some += figures("ocamlopt", "processor time", [8] * 9, [5] * 9, names=("table", "helper"))
    (found,) = rows(Results(some), suite)
    assert found.effects == (0.8, 0.6, 0.5)
    # The helper is a setting of ours, and no rival here.
    assert found.verdict == "won" and [o.name for o in found.others] == ["stock"]


def test_lost_values_are_told():
    assert row("longest round").name.endswith("†")
    assert not row("pair").name.endswith("†")


@pytest.fixture
def root(tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "README.md").write_text("before\n{}\nratio 0.7316\n{}\nafter\n".format(*publish.MARKERS))
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "headline.toml").write_text(HEADLINE)
    write_run(tmp_path, "boxroot", ALL, {"load before": "0.1"})
    write_run(
        tmp_path, "outheap", figures("ocamlopt", "processor time", [3, 3], [2, 2], names=("outheap", "stock")), FACTS
    )
    monkeypatch.setattr(drawings, "with_library", svgs)
    return tmp_path


def svgs(program: str, text: str = "") -> str:
    return "".join('"<svg>drawn</svg>"\n' for _ in text.splitlines())


def test_rewrites_the_blocks_and_nothing_else(root: Path):
    assert publish.command(check=True, root=root) == 1
    assert publish.command(check=False, root=root) == 0
    text = (root / "README.md").read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n")
    assert "0.7316" not in text
    assert publish.command(check=True, root=root) == 0


def test_pages_are_short_and_have_losses_first(root: Path):
    many = [f for n in range(99) for f in figures("pair", f"create+delete, batch {n}", [n + 1] * 9, [50] * 9)]
    write_run(root, "boxroot", many, {})
    publish.command(check=False, root=root)
    text = (root / "docs" / "measured" / "boxroot.md").read_text()
    lost, won = (
        text.index("## Where another is better: 49 rows, 49 beyond doubt"),
        text.index("## Boxroot is best: 49 rows, 49 beyond doubt"),
    )
    assert lost < won and text.count("\n") <= 150
    assert "| pair: create+delete, batch 98 | 99 ns | 50 ns | **1.98** |" in text[lost:won]
    assert "| pair: create+delete, batch 0 | 1 ns | 50 ns | 0.02 |" in text[won:]
    assert "(boxroot.svg)" in text and "drawn" in (root / "docs/measured/boxroot.svg").read_text()


def test_pages_of_what_is_published_are_short():
    for name, suite in SUITES.items():
        text = (publish.ROOT / publish.MEASURED / f"{name}.md").read_text()
        assert text.count("\n") <= 150 and text.startswith(f"# {suite.title}, measured")
        assert not re.search(r"\binf\b|\| 0\.00 \|", text)
        for picture in re.findall(r"\]\(([\w-]+\.svg)\)", text):
            assert (publish.ROOT / publish.MEASURED / picture).stat().st_size < 60_000
    assert (publish.ROOT / publish.SUMMARY).stat().st_size < 600_000
    assert (publish.ROOT / "README.md").read_text().count("\n") <= 131


def test_the_summary_has_all_rows(root: Path):
    publish.command(check=False, root=root)
    lines = (root / publish.SUMMARY).read_text().splitlines()
    assert len(lines) == 1 + len(ROWS) + 1
    assert 'boxroot/5.4.1/amd-epyc-2,pair,,"create+delete, batch 10",ns,4,boxroot-0.4.0,2,2.00,1.50–2.50,9' in lines


def test_publishing_packs_what_was_recorded(root: Path):
    folder = next(root.glob("bench/results/boxroot/*/*"))
    figures_before = read_run(folder).results.figures
    assert publish.command(check=True, root=root) == 1 and folder.exists()
    publish.command(check=False, root=root)
    assert not folder.exists() and read_run(archive_of(folder)).results.figures == figures_before
    assert publish.command(check=True, root=root) == 0
    write_run(root, "boxroot", ALL, {})
    assert publish.command(check=True, root=root) == 1  # measured again


def test_readme_has_what_is_won_before_what_is_lost(root: Path):
    publish.command(check=False, root=root)
    text = (root / "README.md").read_text()
    won, lost = text.index("| one | 1 ns | 2 ns | calls |"), text.index("| ten at a time | 4 ns | 2 ns | stubs |")
    assert won < text.index("another is better") < lost
    assert "| compiling |" in text and text.count("another is better") == 2
    assert "](docs/measured/summary.svg)" in text and (root / "docs/measured/summary.svg").exists()


def test_readme_counts_a_loss_to_any_column(root: Path):
    more = figures("pair", "create+delete, batch 1", [0.5], [], names=("generational", ""))
    write_run(root, "boxroot", [*ALL, *more], {})
    publish.command(check=False, root=root)
    text = (root / "README.md").read_text()
    assert text.index("another is better") < text.index("| one | 1 ns | 2 ns | 0.5 ns |")


def test_all_rows_are_from_one_run(root: Path):
    names = ("boxroot", "boxroot-0.4.0")
    new = figures("closures", "add", [1] * 9, [2] * 9, "300,000 closures", names=names, unit="ms")
    write_run(root, "boxroot", new, {"date": "tomorrow"}, name="amd-epyc-2-closures")
    publish.command(check=False, root=root)
    assert "not recorded yet" not in (root / "README.md").read_text()  # the other run has two of the rows
    write_run(root, "boxroot", [*ALL, *new], {"date": "tomorrow"}, name="amd-epyc-2-closures")
    publish.command(check=False, root=root)
    assert "| not recorded yet | 1 ms | 2 ms | new |" in (root / "README.md").read_text()


def test_rows_of_readme_that_were_not_measured_are_an_error(root: Path):
    before = (root / "README.md").read_text()
    path = root / "bench" / "headline.toml"
    path.write_text(path.read_text().replace("batch 1", "batch 2"))
    with pytest.raises(publish.PublishError, match="no recorded run has"):
        publish.command(check=False, root=root)
    path.write_text(HEADLINE.replace('"pair"', '"pairs"'))
    with pytest.raises(publish.PublishError, match="there is no workload pairs"):
        publish.command(check=False, root=root)
    assert (root / "README.md").read_text() == before


def test_figures_older_than_what_they_measure_stop_a_release(root: Path, monkeypatch, capsys):
    publish.command(check=False, root=root)
    assert publish.command(check=True, root=root) == 0 and publish.command(True, True, root) == 1
    assert "has no commit abc" in capsys.readouterr().err
    monkeypatch.setattr(publish, "changed_since", lambda *_: "")
    assert publish.command(True, True, root) == 0


def test_pictures_are_drawn_again_when_their_data_change(root: Path, monkeypatch):
    publish.command(check=False, root=root)
    monkeypatch.setattr(drawings, "with_library", lambda *_: pytest.fail("draws"))
    assert publish.command(check=False, root=root) == publish.command(check=True, root=root) == 0
    write_run(root, "boxroot", [f for f in ALL if f.metric != "create+delete, batch 1"], {})
    assert publish.command(check=True, root=root) == 1
    monkeypatch.setattr(drawings, "with_library", lambda *_: None)
    with pytest.raises(publish.PublishError, match="chart library could not be fetched"):
        publish.command(check=False, root=root)


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([1.36, 82.7], "ns", ["1.36 ns", "82.7 ns"]),
        ([390, 2270], "MB", ["390 MB", "2270 MB"]),
        ([1921.2, 2400], "ms", ["1.92 s", "2.4 s"]),
        ([5321.0, None], "ns", ["5.32 µs", ""]),
        ([0.0, 2397.0], "", ["0", "2397"]),
    ],
)
def test_amounts_of_a_row_have_one_unit(values, unit, shown):
    assert amounts(values, unit) == shown


def test_ratios_to_nothing_are_not_shown():
    assert (times(float("inf")), times(0.00012), times(2), times(38.9)) == ("", "0.0001", "2.00", "38.9")


def test_bases_of_workloads(root: Path):
    """Two of ours: calls beside C, with the others in the row; a build, for which there is no C."""
    names = ("ocaml-boxroot", "c")
    some = [
        *figures("calls", "read, int", [3] * 9, [2] * 9, names=names),
        *figures("calls", "read, int", [6] * 9, [40] * 9, names=("ocaml-interop", "ocaml")),
        *figures("clean build", "time", [1] * 9, [4] * 9, names=("ocaml-boxroot", "ocaml-interop"), unit="s"),
    ]
    write_run(root, "rust", some, FACTS)
    publish.command(check=False, root=root)
    document = (root / "docs" / "measured" / "rust.md").read_text()
    assert "| Calls and the lock | 1 | 0 | 1 | 0 | 9 |" in document
    assert "| Building | 1 | 1 | 0 | 0 | 9 |" in document
    assert "| calls: read, int | 3 ns | 2 ns | **1.50** |" in document
    assert "| clean build: time | 1 s | ocaml-interop 4 s | 0.25 |" in document
    assert publish.command(check=True, root=root) == 0


def test_a_changed_figure_is_noticed(root: Path):
    publish.command(check=False, root=root)
    path = root / "docs" / "measured" / "boxroot.md"
    path.write_text(path.read_text().replace("**2.00**", "**1.00**"))
    assert publish.command(check=True, root=root) == 1


def test_a_busy_machine_is_told(root: Path):
    write_run(root, "boxroot", ALL, {"load before": "2.5"})
    publish.command(check=False, root=root)
    for name in ("README.md", "docs/measured/boxroot.md"):
        text = " ".join((root / name).read_text().split()).replace("The machine", "the machine")
        assert "the machine was busy: load 2.5 on 2 cores" in text, name


def test_data_without_facts_are_refused(root: Path):
    before = (root / "README.md").read_text()
    next(root.glob("bench/results/boxroot/*/*/facts.json")).unlink()
    with pytest.raises(publish.PublishError, match="no facts.json"):
        publish.command(check=False, root=root)
    assert (root / "README.md").read_text() == before


def test_the_picture_has_the_figures_of_the_table(root: Path):
    names = ("outheap", "stock")
    more = figures("ocamlopt", "processor time", [4] * 9, [2] * 9, "1", names=names)
    more += figures("coq", "processor time", [1] * 9, [2] * 9, "2", names=names)
    once = figures("ocamlopt", "processor time", [3], [2], "1", names=names)
    once += figures("marking", "major GC, median", [1], [4], "3", names=names)
    write_run(root, "outheap", once, FACTS)
    write_run(root, "outheap", more, {**FACTS, "commit": "more"}, name="amd-epyc-2-more")
    suite = SUITES["outheap"]
    chosen = chosen_rows(publish.recorded(root / "bench/results", suite), suite)
    shown = publish.picture(chosen, suite)["data"]["values"]
    colours = {drawings.COLOURS[k]: k for k in ("won", "lost", "open")}
    assert [(v["group"], v["name"], colours[v["colour"]], v["value"], v.get("low")) for v in shown] == [
        ("Marking", "marking (3): major GC, median", "open", 0.25, None),  # one round
        ("Programs", "ocamlopt (1): processor time", "lost", 2, 2),
        ("Programs", "coq (2): processor time", "won", 0.5, 0.5),
    ]


def test_a_version_recorded_in_part_does_not_replace_one_recorded_in_whole(root: Path):
    some = [*figures("pair", "create+delete, batch 1", [8, 8, 8], [2, 2, 2])]
    write_run(root, "boxroot", some, {"OCaml": "5.5.2", "commit": "later"}, "5.5.2")
    publish.command(check=False, root=root)
    page = (root / "docs/measured/boxroot.md").read_text()
    assert "## By subject, OCaml 5.4.1" in page and "| 5.5.2/amd-epyc-2 |" in page
    assert "commit later" not in (root / "README.md").read_text()


def test_groups_say_who_wins():
    (group,) = [g for g in groups(ROWS, SUITE) if g.title == SUITE_OF_PAIR]
    assert (group.rows, group.won, group.lost, group.undecided) == (2, 0, 1, 1)


def test_groups_hold_each_workload_once():
    for suite in SUITES.values():
        assert sorted(w for group in suite.groups.values() for w in group) == sorted(suite.workloads), suite.name


def test_runs_for_the_record_come_before_those_on_a_busy_machine(root: Path):
    names, busy = ("outheap", "stock"), {"load before": "2.5", "date": "2026-12-01 10:00 UTC"}
    quiet = figures("ocamlopt", "processor time", [4] * 4, [2] * 4, names=names)
    for version, name, of_it, facts in (
        ("5.4.1", "amd-epyc-2-quiet", quiet, {"commit": "quiet", "date": "tomorrow"}),
        ("5.4.1", "amd-epyc-2-busy", figures("ocamlopt", "processor time", [9] * 5, [2] * 5, names=names), busy),
        ("5.4.2", "amd-epyc-2", figures("ocamlopt", "processor time", [8] * 5, [2] * 5, names=names), busy),
    ):
        write_run(root, "outheap", of_it, {"OCaml": f"{version}, flags -g", "commit": "busy", **facts}, version, name)
    publish.command(check=False, root=root)
    text = (root / "README.md").read_text()
    assert "commit quiet," in text and "commit busy" not in text and "| compiling | 4 ns | 2 ns |" in text
