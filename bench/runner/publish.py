# SPDX-License-Identifier: MIT
"""Writes every measured figure of the documents from the raw data in bench/results/, and from nothing else: the short
tables in README.md, a page for each product in docs/measured/, with a picture, the excerpts in the guides, and
summary.csv beside the data."""

from __future__ import annotations

import csv
import io
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from . import charts, headline, html, machine
from .compiler import ROOT
from .model import Suite
from .results import BadFolder, Run, pack, read_run, run_paths
from .rows import HEADER, Row, chosen_rows, groups, numbers, rows
from .suites import SUITES
from .text import INTERVALS, interval, markdown_table, number, times

RESULTS = ROOT / "bench" / "results"
MARKERS = ("<!-- measured:begin -->", "<!-- measured:end -->")  # of the tables in README.md
# The rows of a group of workloads, in a document about it.
EXCERPTS = {
    ("outheap", "Regions"): ("docs/guide/regions.md", MARKERS),
    ("outheap", "Hash-consing"): ("docs/guide/hashcons.md", MARKERS),
}
MEASURED = "docs/measured"  # a page for each suite, and its picture
SUMMARY = "bench/results/summary.csv"
WRITTEN_BY = "<!-- Written by `tools/bench --publish` from the raw data in bench/results; changes by hand are lost. -->"
PROCESSOR_TIME = ", processor time"
MOST_ROWS = 8
OF_EACH_END = 5  # rows of a version that is recorded in part, of those that differ most from the other version's


class PublishError(Exception):
    pass


def version_key(run: Run) -> tuple:
    """The newest version first; of a version, the runs that are named by their machine alone before those of a part."""
    part = run.name != machine.short_name(run.facts)
    return tuple(-n for n in headline.version_number(run)), part


def recorded(results: Path, suite: Suite) -> list[Run]:
    """All runs of a suite, the newest version of OCaml first, and the newest main run of a version before others."""
    folder = results / suite.name
    runs = [read_run(path) for path in run_paths(folder)] if folder.exists() else []
    return sorted(sorted(runs, key=lambda run: run.facts["date"], reverse=True), key=version_key)


def wrapped(lines: Iterable[str]) -> Iterable[str]:
    """Prose in lines of 120 characters; tables as they are."""
    for line in lines:
        yield (
            line
            if line.startswith(("|", "<", "!", "#"))
            else textwrap.fill(
                line,
                120,
                subsequent_indent="  " if line.startswith("* ") else "",
                break_long_words=False,
                break_on_hyphens=False,
            )
        )


def when(run: Run) -> str:
    f = run.facts
    counts = sorted({len(v) for v in run.results.values.values()})
    rounds = "one round" if counts == [1] else f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} rounds"
    return (
        f"Measured {f['date']} at commit {f['commit']}, OCaml {run.version}, {f['processor']} with {f['cores']} cores, "
        f"{f['mode']} mode, {rounds}."
    )


def warned(run: Run) -> list[str]:
    found = machine.warnings(run.facts)
    return [f"**Not a run for the record:** {'; '.join(found)}.", ""] if found else []


def newest(runs: list[Run]) -> list[Run]:
    return headline.newest(runs)


# --- README.md --------------------------------------------------------------------------------------------------------


def front(of_suites: dict[str, list[Run]], root: Path) -> list[str]:
    """The tables of README.md."""
    tables = [table for name, runs in of_suites.items() for table in headline.read(root, name, runs)]
    if not tables:
        return []
    pages = ", ".join(f"[{SUITES[n].title}]({MEASURED}/{n}.md)" for n, runs in of_suites.items() if runs)
    *body, where = headline.render(tables)
    return [*body, f"{where} More, with pictures: {pages}."]


# --- docs/measured/ ---------------------------------------------------------------------------------------------------


def best_and_worst(chosen: list[tuple[Row, Run]], suite: Suite, marks: dict[str, str]) -> list[str]:
    """What each side wins, the largest differences first; by the wall clock where there are both."""
    header = ["", suite.title, suite.base_title, "ratio", "95 %", "rounds", "run"]
    out: list[str] = []
    twice = {(row.workload, row.case, row.metric + PROCESSOR_TIME) for row, _ in chosen}
    some = [
        (row, run) for row, run in chosen if not row.lost_values and (row.workload, row.case, row.metric) not in twice
    ]
    lost = [pair for pair in some if pair[0].ratio.value > 1]
    won = [pair for pair in reversed(some) if pair[0].ratio.value < 1]
    for title, part in ((f"Where {suite.base_words} is better", lost), (f"Where {suite.title} is better", won)):
        out += [f"## {title}: {len(part)} rows, {sum(row.sure for row, _ in part)} beyond doubt", ""]
        if part:
            body = [[*row.cells()[:6], marks[headline.source(run)]] for row, run in part[:MOST_ROWS]]
            out += [*markdown_table(header, body), ""]
        if len(part) > MOST_ROWS:
            out += [f"The {MOST_ROWS} greatest differences; the report has the others.", ""]
    return out


def by_subject(chosen: list[tuple[Row, Run]], suite: Suite) -> list[str]:
    header = ["workloads", "rows", f"{suite.title} better", f"{suite.base_title} better", "undecided", "rounds"]
    if any(w.base for w in suite.workloads.values()):
        header[3] = "the other better"
    found = groups([row for row, _ in chosen], suite)
    return markdown_table(header, [[g.title, *map(str, (g.rows, g.won, g.lost, g.undecided)), g.rounds] for g in found])


def later(runs: list[Run], suite: Suite) -> list[str]:
    """Versions that are newer than the one of the tables, and recorded in part: their rows beside its."""
    whole, out = newest(runs), []
    versions = {r.version: headline.version_number(r) for r in runs}
    before = {row.name: row for row, _ in chosen_rows(whole, suite)}
    for version in sorted(versions, key=lambda v: versions[v]):
        if versions[version] <= headline.version_number(whole[0]):
            continue
        some = [run for run in runs if run.version == version]
        both = [(row, before[row.name]) for row, _ in chosen_rows(some, suite) if row.name in before]
        old = whole[0].version
        where = ", ".join(sorted({run.facts["processor"] for run in some}))
        runs_of = f"the {len(some)} runs" if len(some) > 1 else "the run"
        out += [f"## OCaml {version} beside {old}", ""]
        out += [f"Measured in {runs_of} with {version} that the last table has, on {where}.", ""]
        out += [*by_subject(chosen_rows(some, suite), suite), ""]
        out += [f"{len(both)} rows are recorded on both. First those whose ratio is the greater one on {version}.", ""]
        # A count of nothing (page faults, for one) makes a ratio of zero, which has no quotient.
        both = [pair for pair in both if min(r.ratio.value for r in pair) > 0]
        both.sort(key=lambda pair: -pair[0].ratio.value / pair[1].ratio.value)
        few = both if len(both) <= 2 * OF_EACH_END else [*both[:OF_EACH_END], *both[-OF_EACH_END:]]
        header = ["", f"{suite.title}, {version}", f"{old}", f"{suite.base_title}, {version}", f"{old}"]
        header += [f"ratio, {version}", "95 %", f"{old}", "95 %"]
        body = [
            [
                new.name,
                f"{number(new.ours)} {new.unit}".strip(),
                number(then.ours),
                number(new.theirs),
                number(then.theirs),
                *(t for r in (new.ratio, then.ratio) for t in (times(r.value), interval(r))),
            ]
            for new, then in few
        ]
        out += [*markdown_table(header, body), ""]
    return out


def runs_table(runs: list[Run], suite: Suite, marks: dict[str, str]) -> list[str]:
    body = []
    for run in runs:
        f, all_rows = run.facts, rows(run.results, suite)
        sure = [r.ratio.value for r in all_rows if r.sure and not r.lost_values]
        warnings = f" ({'; '.join(found)})" if (found := machine.warnings(f)) else ""
        body.append(
            [
                marks.get(headline.source(run), ""),
                f"{run.version}/{run.name}",
                f["date"][:10],
                f["commit"],
                f["mode"] + warnings,
                numbers(all_rows) if all_rows else "",
                *map(str, (len(all_rows), sum(v < 1 for v in sure), sum(v > 1 for v in sure))),
            ]
        )
    header = ["", "run", "date", "commit", "mode", "rounds", "rows", "better", "worse"]
    return markdown_table(header, body)


def document(runs: list[Run], suite: Suite, root: Path) -> str:
    chosen = chosen_rows(newest(runs), suite)
    tables = headline.read(root, suite.name, runs)
    found = html.curve(newest(runs), suite)
    used = [line.run for table in tables for line in table.lines] + [run for _, run in chosen]
    used += [found[1]] if found else []
    marks = headline.marks_of(used)
    out = [f"# {suite.title}, measured", "", WRITTEN_BY, ""]
    if words := " ".join(text for table in tables for text in table.words):
        out += [words, ""]
    for table in tables:
        out += [*headline.table_lines(table, marks), ""]
    if chosen:
        out += [f"![Ratios of {suite.title} to {suite.base_title}]({suite.name}.svg)", ""]
    if found:
        (workload, case), (drawn, run) = suite.curve, found
        what = f"{workload}, {case}: {suite.workloads[workload].note}"
        out += [f"![{what}]({suite.name}-{workload}.svg)", ""]
        out += [f"{what}; {drawn.x_title}, {drawn.y_title} ({marks[headline.source(run)]}).", ""]
    if used:
        out += [f"Measured {headline.sources(marks, used)}", ""]
    out += [
        f"A ratio below 1: {suite.title} is better; bold: {suite.base_words} is. {INTERVALS} Rows that are "
        "not here, other rivals, floors, distributions and what was not measured are in the report, which `make bench` "
        "writes of a run of yours and `tools/bench --report` of all that is recorded; medians and intervals of all "
        "rows are in `bench/results/summary.csv`. What each workload measures: `bench/README.md`.",
        "",
    ]
    if chosen:
        out += [f"## By subject, OCaml {newest(runs)[0].version}", "", *by_subject(chosen, suite), ""]
        out += best_and_worst(chosen, suite, marks)
        out += later(runs, suite)
    out += ["## All runs", "", *runs_table(runs, suite, marks), ""]
    return "\n".join(wrapped([*out, "## Caveats", ""])) + "\n" + suite.caveats + "\n"


# --- bench/results/summary.csv ----------------------------------------------------------------------------------------


def summary(of_suites: dict[str, list[Run]]) -> str:
    """The rows of all runs: medians, their ratio, its interval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", "workload", "case", "metric", "unit", "ours", "base", "ratio", "95 %", "rounds"])
    for name, runs in of_suites.items():
        for run in runs:
            for r in rows(run.results, SUITES[name]):
                between = interval(r.ratio) if r.ratio.low is not None else ""
                figures = (number(r.ours), number(r.theirs), times(r.ratio.value), between, r.ratio.rounds)
                writer.writerow([f"{name}/{run.version}/{run.name}", r.workload, r.case, r.metric, r.unit, *figures])
    return out.getvalue()


# --- all files --------------------------------------------------------------------------------------------------------


def excerpt(runs: list[Run], suite: Suite, group: str) -> list[str]:
    """All rows of a group, of the newest version: each from a run for the record, if it can be, with most rounds."""
    out: list[str] = []
    wanted, told = suite.groups[group], set()
    header = [*HEADER[:1], suite.title, suite.base_title, *HEADER[3:6], HEADER[-1]]

    def rank(run: Run) -> tuple:
        return machine.is_for_the_record(run.facts), int(run.facts.get("rounds", 1)), run.facts["date"]

    for run in sorted(newest(runs), key=rank, reverse=True):
        some = [r for r in rows(run.results, suite) if r.workload in wanted and r.name not in told]
        if not some:
            continue
        here = {f"({r.workload} {r.case})" for r in some} | {f"({r.workload})" for r in some}
        missed = [
            v for v in suite.check(run.results, run.version) if not v.reached and any(name in v.name for name in here)
        ]
        out += ["", when(run), "", *warned(run)]
        out += markdown_table(header, [[*r.cells()[:6], r.cells()[-1]] for r in some])
        if missed:
            out += ["", "Targets that were missed: " + "; ".join(f"{v.name}, {v.figure:.2f}" for v in missed) + "."]
        told |= {r.name for r in some}
    return out[1:] or ["Not recorded yet."]


def with_block(text: str, markers: tuple[str, str], lines: list[str], name: str = "README.md") -> str:
    begin, end = markers
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise PublishError(f"{name} must have the markers {begin} and {end}, once each and in this order")
    return (
        text[: text.index(begin)]
        + "\n".join([begin, WRITTEN_BY, "", *wrapped(lines), end])
        + text[text.index(end) + len(end) :]
    )


def contents(root: Path) -> dict[Path, str]:
    """What each file should contain."""
    results, readme = root / "bench" / "results", (root / "README.md").read_text()
    files: dict[Path, str] = {}
    of_suites = {name: recorded(results, suite) for name, suite in SUITES.items()}
    for suite in SUITES.values():
        runs = of_suites[suite.name]
        if not runs:
            continue
        for (name, group), (file, markers) in EXCERPTS.items():
            if name == suite.name and (root / file).exists():
                old = (root / file).read_text()
                files[root / file] = with_block(old, markers, excerpt(runs, suite, group), file)
        files[root / MEASURED / f"{suite.name}.md"] = document(runs, suite, root)
        if chosen := chosen_rows(newest(runs), suite):
            files[root / MEASURED / f"{suite.name}.svg"] = html.picture(chosen, suite)
        if found := html.curve(newest(runs), suite):
            files[root / MEASURED / f"{suite.name}-{suite.curve[0]}.svg"] = charts.curves_picture(found[0])
    files[root / SUMMARY] = summary(of_suites)
    return {root / "README.md": with_block(readme, MARKERS, front(of_suites, root)), **files}


def not_packed(root: Path) -> list[Path]:
    """Recorded runs that are folders still."""
    results = root / "bench" / "results"
    return [path for path in run_paths(results) if path.is_dir()] if results.exists() else []


def command(check: bool, root: Path = ROOT) -> int:
    try:
        wrong = {path: text for path, text in contents(root).items() if not path.exists() or path.read_text() != text}
    except (BadFolder, OSError, headline.HeadlineError) as error:
        raise PublishError(str(error)) from None
    loose = not_packed(root)
    for path in loose:
        if check:
            print(f"{path.relative_to(root)}: not packed; run `tools/bench --publish`", file=sys.stderr)
        else:
            print(f"wrote {pack(path).relative_to(root)}", file=sys.stderr)
    for path, text in wrong.items():
        if check:
            print(
                f"{path.relative_to(root)}: not what bench/results says; run `tools/bench --publish`", file=sys.stderr
            )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(root)}", file=sys.stderr)
    return int(check and bool(wrong or loose))
