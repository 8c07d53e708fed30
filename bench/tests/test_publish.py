# SPDX-License-Identifier: MIT
"""What is published is what the raw data say."""

import re
from pathlib import Path

import pytest
from helpers import FACTS, figures, write_run
from runner import headline, publish
from runner.results import Results, archive_of, read_run
from runner.rows import groups, rows
from runner.suites import SUITES

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
[[boxroot.words]]
text = "One takes {0}, and {1} with 0.4.0."
figure = ["pair", "", "create+delete, batch 1"]
implementations = ["boxroot", "boxroot-0.4.0"]
[[boxroot.rows]]
what = "not recorded yet"
figure = ["closures", "300,000 closures", "add"]
why = "new"
implementations = ["boxroot", "boxroot-0.4.0", "generational_in_place"]
[outheap]
implementations = { "outheap" = "Outheap", "stock" = "stock runtime" }
[[outheap.rows]]
what = "compiling"
figure = ["ocamlopt", "", "processor time"]
why = "a program"
[rust]
implementations = { "ocaml-boxroot" = "ocaml-boxroot", "c" = "C" }
[[rust.rows]]
what = "a call"
figure = ["calls", "", "read, int"]
why = "calls"
"""
SUITE_OF_PAIR = next(title for title, workloads in SUITE.groups.items() if "pair" in workloads)


def row(text: str):
    return next(r for r in ROWS if text in r.name)


def test_what_the_rival_wins_comes_first():
    ratios = [r.ratio.value for r in ROWS]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] == float("inf")  # it keeps memory, the rival none


def test_every_figure_of_which_less_is_better():
    assert len(ROWS) == 6  # neither collections nor what begins with gc:


def test_ratio_of_medians():
    r = row("batch 10")
    assert (r.ours, r.theirs, r.ratio.value, r.ratio.rounds) == (4, 2, 2, 9)
    assert r.ratio.sure and r.ratio.low >= 1.5 and r.ratio.high <= 2.5


def test_lost_values_are_told():
    assert row("longest round").name.endswith("†")
    assert not row("pair").name.endswith("†")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("before\n{}\nratio 0.7316\n{}\nafter\n".format(*publish.MARKERS))
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "headline.toml").write_text(HEADLINE)
    write_run(tmp_path, "boxroot", ALL, {"load before": "0.1"})
    write_run(
        tmp_path, "outheap", figures("ocamlopt", "processor time", [3, 3], [2, 2], names=("outheap", "stock")), FACTS
    )
    return tmp_path


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
        text.index("## Where 0.4.0 is better: 49 rows, 49 beyond doubt"),
        text.index("## Where Boxroot is better: 49 rows, 49 beyond doubt"),
    )
    assert lost < won and text.count("\n") <= 150
    assert "| pair: create+delete, batch 98 | 99 ns | 50 | **1.98** |" in text[lost:won]
    assert "| pair: create+delete, batch 0 | 1 ns | 50 | 0.02 |" in text[won:]
    assert "(boxroot.svg)" in text and (root / "docs/measured/boxroot.svg").exists()


def test_pages_of_what_is_published_are_short():
    for name, suite in SUITES.items():
        text = (publish.ROOT / publish.MEASURED / f"{name}.md").read_text()
        assert text.count("\n") <= 150 and text.startswith(f"# {suite.title}, measured")
        for picture in re.findall(r"\]\(([\w-]+\.svg)\)", text):
            assert (publish.ROOT / publish.MEASURED / picture).stat().st_size < 20_000
    assert (publish.ROOT / publish.SUMMARY).stat().st_size < 400_000
    assert (publish.ROOT / "README.md").read_text().count("\n") <= 120


def test_the_summary_has_all_rows(root: Path):
    publish.command(check=False, root=root)
    lines = (root / publish.SUMMARY).read_text().splitlines()
    assert len(lines) == 1 + len(ROWS) + 1
    assert 'boxroot/5.4.1/amd-epyc-2,pair,,"create+delete, batch 10",ns,4,2,2.00,1.50–2.50,9' in lines


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
    won, lost = text.index("| one | 1 ns | 2 ns |  | calls (a) |"), text.index("| ten at a time | 4 ns | 2 ns |")
    assert won < text.index("where it is slower") < lost
    assert "| compiling |" in text and text.count("where it is slower") == 2
    assert "One takes 1 ns, and 2 ns with 0.4.0." in text


def test_a_row_of_a_workload_that_is_new_waits_until_it_is_recorded(root: Path):
    publish.command(check=False, root=root)
    assert "not recorded yet" not in (root / "README.md").read_text()
    names = ("boxroot", "boxroot-0.4.0")
    new = figures("closures", "add", [1, 1], [2, 2], "300,000 closures", names=names, unit="ms")
    new += figures("closures", "add", [5, 5], [], "300,000 closures", names=("generational_in_place", ""), unit="ms")
    write_run(root, "boxroot", new, {"date": "tomorrow"}, name="amd-epyc-2-closures")
    publish.command(check=False, root=root)
    assert "| not recorded yet | 1 ms | 2 ms | 5 ms | new (b) |" in (root / "README.md").read_text()


def test_a_row_of_one_round_says_so(root: Path):
    some = [*figures("pair", "create+delete, batch 1", [1], [2]), *figures("pair", "create+delete, batch 10", [1], [2])]
    write_run(root, "boxroot", some, {"load before": "0.1"})
    publish.command(check=False, root=root)
    assert "| one | 1 ns | 2 ns |  | calls (a; one round) |" in (root / "README.md").read_text()


def test_a_row_of_readme_that_was_not_measured_is_an_error(root: Path):
    before = (root / "README.md").read_text()
    path = root / "bench" / "headline.toml"
    path.write_text(path.read_text().replace("batch 10", "batch 11"))
    with pytest.raises(publish.PublishError, match="no recorded run has pair"):
        publish.command(check=False, root=root)
    assert (root / "README.md").read_text() == before


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.36, "ns", "1.36 ns"),
        (1921.2, "ms", "1.92 s"),
        (5321.0, "ns", "5.32 µs"),
        (23784, "", "23784"),
        (8.1, "B", "8.1 B"),
    ],
)
def test_amounts_have_units_that_fit(value, unit, text):
    assert headline.amount(value, unit) == text


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
    assert "| calls: read, int | 3 ns | 2 | **1.50** |" in document
    assert "| clean build: time, beside ocaml-interop | 1 s | 4 | 0.25 |" in document
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


def test_readme_takes_each_row_from_the_run_with_most_rounds(root: Path):
    names = ("outheap", "stock")
    more = figures("ocamlopt", "processor time", [4, 4, 4], [2, 2, 2], names=names)
    write_run(root, "outheap", more, {**FACTS, "commit": "more"}, name="amd-epyc-2-more")
    publish.command(check=False, root=root)
    text = (root / "README.md").read_text()
    assert "commit more," in text and "| compiling | 4 ns | 2 ns |" in text


def test_the_picture_has_the_figures_of_the_table(root: Path):
    names = ("outheap", "stock")
    more = figures("ocamlopt", "processor time", [4] * 9, [2] * 9, "1", names=names)
    more += figures("coq", "processor time", [1] * 9, [2] * 9, "2", names=names)
    once = figures("ocamlopt", "processor time", [3], [2], "1", names=names)
    once += figures("marking", "major GC, median", [1], [4], "3", names=names)
    write_run(root, "outheap", once, FACTS)
    write_run(root, "outheap", more, {**FACTS, "commit": "more"}, name="amd-epyc-2-more")
    (root / "bench" / "headline.toml").unlink()
    publish.command(check=False, root=root)
    picture = (root / "docs/measured/outheap.svg").read_text()
    row = r'text-anchor="end">([^<]*: [^<]*)</text>.*?<text class="(\w+)"[^>]*>([0-9.]*)</text>'
    ratios = re.findall(row, picture, re.S)
    assert ratios == [
        ("marking (3): major GC, median", "open", "0.25"),  # one round
        ("ocamlopt (1): processor time", "lose", "2.00"),
        ("coq (2): processor time", "win", "0.50"),
    ]


def test_readme_shows_the_newest_of_runs_with_as_many_rounds(root: Path):
    names = ("outheap", "stock")
    for name, date, processor in (
        ("another-processor-2", "2026-11-23 10:00 UTC", "Another Processor of"),
        ("another-2", "2026-11-23 09:00 UTC", "Another"),
        ("amd-epyc-2-part", "2026-11-23 11:00 UTC", "AMD EPYC"),
        ("amd-epyc-2", "2026-11-22 20:00 UTC", "AMD EPYC"),
    ):
        of_it = figures("ocamlopt", "processor time", [4, 4, 4], [2, 2, 2], names=names)
        facts = {"OCaml": "5.4.2, flags -g", "date": date, "commit": name, "processor": processor}
        write_run(root, "outheap", of_it, facts, "5.4.2", name)
    publish.command(check=False, root=root)
    text = (root / "README.md").read_text()
    assert "commit amd-epyc-2-part," in text and "commit another" not in text


def test_a_version_recorded_in_part_stands_beside_the_one_recorded_in_whole(root: Path):
    some = [*figures("pair", "create+delete, batch 1", [8, 8, 8], [2, 2, 2])]
    write_run(root, "boxroot", some, {"OCaml": "5.5.2", "commit": "later"}, "5.5.2")
    publish.command(check=False, root=root)
    page = (root / "docs/measured/boxroot.md").read_text()
    assert "## By subject, OCaml 5.4.1" in page
    _, _, part = page.partition("## OCaml 5.5.2 beside 5.4.1")
    assert re.search(r"\| pair: create\+delete, batch 1 \| 8 .*\| 1 .*\| 2 .*\| 2 .*\*{0,2}4\.00", part)
    assert "commit later" not in (root / "README.md").read_text()


def test_groups_say_who_wins():
    (group,) = [g for g in groups(ROWS, SUITE) if g.title == SUITE_OF_PAIR]
    assert (group.rows, group.won, group.lost, group.undecided) == (2, 0, 1, 1)


def test_groups_hold_each_workload_once():
    for suite in SUITES.values():
        assert sorted(w for group in suite.groups.values() for w in group) == sorted(suite.workloads), suite.name


def test_readme_prefers_several_rounds_to_the_newest_version(root: Path):
    names = ("outheap", "stock")
    once = figures("ocamlopt", "processor time", [4], [2], names=names)
    write_run(root, "outheap", once, {"OCaml": "5.4.2, flags -g", "commit": "once"}, "5.4.2", "amd-epyc-2")
    publish.command(check=False, root=root)
    assert "commit once" not in (root / "README.md").read_text()


def test_runs_for_the_record_come_before_those_on_a_busy_machine(root: Path):
    names, busy = ("outheap", "stock"), {"load before": "2.5", "date": "2026-12-01 10:00 UTC"}
    quiet = figures("ocamlopt", "processor time", [4] * 4, [2] * 4, names=names)
    for version, name, of_it, facts in (
        ("5.4.1", "amd-epyc-2-quiet", quiet, {"commit": "quiet"}),
        ("5.4.1", "amd-epyc-2-busy", figures("ocamlopt", "processor time", [9] * 5, [2] * 5, names=names), busy),
        ("5.4.2", "amd-epyc-2", figures("ocamlopt", "processor time", [8] * 5, [2] * 5, names=names), busy),
    ):
        write_run(root, "outheap", of_it, {"OCaml": f"{version}, flags -g", "commit": "busy", **facts}, version, name)
    publish.command(check=False, root=root)
    text = (root / "README.md").read_text()
    assert "commit quiet," in text and "commit busy" not in text and "| compiling | 4 ns | 2 ns |" in text
