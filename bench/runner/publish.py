# SPDX-License-Identifier: MIT
"""Writes every measured figure of the documents from the raw data in bench/results/, and from nothing else: the tables
in README.md with a picture, a page for each product in docs/measured/, the excerpts in the guides, and summary.csv
beside the data."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from . import drawings, headline, machine, verdicts
from .compiler import BUILDS, ROOT
from .headline import source
from .model import Suite
from .results import BadFolder, Run, pack, read_run, run_paths
from .rows import Row, chosen_rows, groups, numbers, rows
from .suites import SUITES
from .text import UNDECIDED, amounts, interval, markdown_table, number, times

RESULTS = ROOT / "bench" / "results"
MARKERS = ("<!-- measured:begin -->", "<!-- measured:end -->")
# The rows of a group of workloads, in a document about it.
EXCERPTS = {("outheap", "Regions"): "docs/guide/regions.md", ("outheap", "Hash-consing"): "docs/guide/hashcons.md"}
MEASURED = "docs/measured"  # a page for each suite, and its pictures
PICTURE = f"{MEASURED}/summary.svg"  # of README.md's rows
SUMMARY = "bench/results/summary.csv"
WRITTEN_BY = "<!-- Written by `tools/bench --publish` from the raw data in bench/results; changes by hand are lost. -->"
PROCESSOR_TIME = ", processor time"
MOST_ROWS = 8
BETTER = "ratio to the best of the others; left of 1 is better; grey is undecided"
OTHER_BUILDS = {b.label for b in BUILDS.values() if b.label}


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


def newest(runs: list[Run]) -> list[Run]:
    """The runs of one version of OCaml: the newest among those with the most figures. So a newer version counts only
    when as much was measured on it."""
    figures: dict[str, set] = {}
    for run in runs:
        figures.setdefault(run.version, set()).update(run.results.units)
    most = max(figures.values(), key=len, default=set())
    whole = [run for run in runs if 4 * len(figures[run.version] & most) > 3 * len(most)]
    return [run for run in whole if run.version == max(whole, key=headline.version_number).version]


def changed_since(run: Run, suite: Suite, root: Path) -> str:
    """Which sources of the product have changed since a run, or why that is not known."""
    commit = run.facts["commit"].split(",")[0]
    command = ["git", "diff", "--name-only", commit, "--", *suite.sources]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        return f"nobody knows: this repository has no commit {commit}"
    files = done.stdout.split()
    return f"{len(files)} files of {', '.join(suite.sources)} have changed since {commit}" if files else ""


def wrapped(lines: Iterable[str]) -> Iterable[str]:
    """Prose in lines of 120 characters; tables as they are."""
    for line in lines:
        prose = not line.startswith(("|", "<", "!", "#"))
        yield textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False) if prose else line


# --- docs/measured/ ---------------------------------------------------------------------------------------------------


def effect(value: float | None) -> str:
    return "" if value is None else times(value)


def row_table(some: list[tuple[Row, Run]], suite: Suite, marks: dict[str, str]) -> list[str]:
    header = ["", suite.title, suite.base_title, "ratio", "95 %", "rounds", "the best of the others", "ratio", "95 %"]
    header += [*suite.effects, *(["run"] if marks else [])]
    body = []
    for row, run in some:
        base = suite.base_of(row.workload)
        beside = next((o for o in row.others if o.name == base), None)
        best = row.best
        values = amounts([row.ours, beside.value if beside else None, best.value], row.unit)
        named = f"{base} " if base != suite.base and beside else ""
        is_other = best is not beside
        ratio = times(best.ratio.value)
        cells = [row.name, values[0], named + values[1]]
        cells += [times(beside.ratio.value), interval(beside.ratio), str(beside.ratio.rounds)] if beside else [""] * 3
        cells += [f"{best.name} {values[2]}", ratio, interval(best.ratio)] if is_other else [""] * 3
        if best.ratio.value > 1:
            at = 7 if is_other else 3
            cells[at] = f"**{cells[at]}**" if cells[at] else ""
        body.append([*cells, *map(effect, row.effects), *([marks[source(run)]] if marks else [])])
    told = [{cells[n] for cells in body} - {"", *([UNDECIDED] if n == 8 else [])} for n in range(len(header))]
    used = [n for n in range(len(header)) if n < 3 or told[n]]  # a second interval that decides nothing is left out
    return markdown_table([header[n] for n in used], [[cells[n] for n in used] for cells in body])


def by_subject(chosen: list[tuple[Row, Run]], suite: Suite) -> list[str]:
    header = ["workloads", "rows", "better than all others", "worse than any other", "undecided", "rounds"]
    found = groups([row for row, _ in chosen], suite)
    return markdown_table(header, [[g.title, *map(str, (g.rows, g.won, g.lost, g.undecided)), g.rounds] for g in found])


def best_and_worst(chosen: list[tuple[Row, Run]], suite: Suite, marks: dict[str, str]) -> list[str]:
    """The largest differences first; by the wall clock where there are both."""
    out: list[str] = []
    twice = {(row.workload, row.case, row.metric + PROCESSOR_TIME) for row, _ in chosen}
    some = [(r, run) for r, run in chosen if not r.lost_values and (r.workload, r.case, r.metric) not in twice]
    lost = [pair for pair in some if pair[0].best.ratio.value > 1]
    won = [pair for pair in reversed(some) if pair[0].best.ratio.value < 1]
    for title, kind, part in (("Where another is better", "lost", lost), (f"{suite.title} is best", "won", won)):
        out += [f"## {title}: {len(part)} rows, {sum(row.verdict == kind for row, _ in part)} beyond doubt", ""]
        if part:
            out += [*row_table(part[:MOST_ROWS], suite, marks), ""]
        if len(part) > MOST_ROWS:
            out += [f"The {MOST_ROWS} greatest differences; the report has the others.", ""]
    return out


def runs_table(runs: list[Run], suite: Suite, marks: dict[str, str]) -> list[str]:
    body = []
    for run in runs:
        f, all_rows = run.facts, rows(run.results, suite)
        found = [row.verdict for row in all_rows if not row.lost_values]
        warnings = f" ({'; '.join(found_here)})" if (found_here := machine.warnings(f)) else ""
        named = [marks.get(source(run), ""), f"{run.version}/{run.name}", f["date"][:10], f["commit"]]
        counts = map(str, (len(all_rows), found.count("won"), found.count("lost")))
        body.append([*named, f["mode"] + warnings, numbers(all_rows) if all_rows else "", *counts])
    header = ["", "run", "date", "commit", "mode", "rounds", "rows", "better", "worse"]
    return markdown_table(header, body)


def picture(chosen: list[tuple[Row, Run]], suite: Suite) -> dict:
    """Of the figures that stand for workloads, with the users' flags."""
    some = [
        (title, row.name, row)
        for title, workloads in suite.groups.items()
        for workload, metric in suite.headlines
        for row, _ in chosen
        if workload in workloads and (row.workload, row.metric) == (workload, metric)
        if not row.lost_values and row.case.split(", ")[-1] not in OTHER_BUILDS
    ]
    return drawings.ratios(some, BETTER)


def curve(runs: list[Run], suite: Suite) -> tuple[dict, Run] | None:
    """The curve of a suite's page, and the run that it is from: the newest that has it."""
    workload, case = suite.curve or ("", "")
    for run in sorted(runs, key=lambda run: run.facts["date"], reverse=True) if workload else []:
        found = [c for at, c in drawings.distributions(run.results, suite, suite.workloads[workload]) if at == case]
        found += [c for key, c in drawings.over_time(run, suite) if key[:2] == (workload, case)]
        if found:
            return {**found[0], "width": 460}, run
    return None


def document(runs: list[Run], suite: Suite, table: headline.Table | None) -> tuple[str, dict[str, dict]]:
    """A page, and the charts that it shows, by the names of their files."""
    chosen, found = chosen_rows(newest(runs), suite), curve(newest(runs), suite)
    used = [run for _, run in chosen] + ([found[1]] if found else []) + ([table.run] if table else [])
    marks = {text: chr(ord("a") + n) for n, text in enumerate(dict.fromkeys(map(source, used)))}
    charts: dict[str, dict] = {}
    out = [f"# {suite.title}, measured", "", WRITTEN_BY, ""]
    if table:
        out += [*headline.table_lines(table), "", f"Measured {source(table.run)}.", ""]
    if chosen:
        charts[f"{suite.name}.svg"] = picture(chosen, suite)
        out += [f"![Ratios of {suite.title} to the best of the others]({suite.name}.svg)", ""]
    if found:
        workload, case = suite.curve
        charts[f"{suite.name}-{workload}.svg"] = found[0]
        what = f"{workload}, {case}: {suite.workloads[workload].note}"
        out += [f"![{what}]({suite.name}-{workload}.svg)", "", f"{what} ({marks[source(found[1])]}).", ""]
    effects = "".join(f"; *{title}*: `{name}`" for title, name in suite.effects.items())
    if suite.effects:
        effects = f" The last columns have the ratios to {suite.base_title} as effects are added{effects}."
    out += [
        f"A ratio below 1: {suite.title} is better; bold: another is.{effects} `bench/README.md` says what each "
        "workload measures, and when a ratio is undecided or beyond doubt. `bench/results/summary.csv` has all rows; "
        "floors, distributions and what was not measured are in the report, which `make bench` writes of a run of "
        "yours and `tools/bench --report` of all that is recorded.",
        "",
    ]
    if chosen:
        out += [f"## By subject, OCaml {newest(runs)[0].version}", "", *by_subject(chosen, suite), ""]
        out += best_and_worst(chosen, suite, marks)
    out += ["## All runs", "", *runs_table(runs, suite, marks), ""]
    return "\n".join(wrapped([*out, "## Caveats", ""])) + "\n" + suite.caveats.strip() + "\n", charts


# --- all files --------------------------------------------------------------------------------------------------------


def summary(of_suites: dict[str, list[Run]]) -> str:
    """The rows of all runs: medians, their ratio to the base and to the best of the others."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header = ["run", "workload", "case", "metric", "unit", "ours", "other", "its figure", "ratio", "95 %", "rounds"]
    writer.writerow(header)
    for name, runs in of_suites.items():
        for run in runs:
            for r in rows(run.results, SUITES[name]):
                for o in dict.fromkeys((r.others[0], r.best)):
                    between = interval(o.ratio) if o.ratio.low is not None else ""
                    figures = (number(r.ours), o.name, number(o.value), times(o.ratio.value), between, o.ratio.rounds)
                    writer.writerow(
                        [f"{name}/{run.version}/{run.name}", r.workload, r.case, r.metric, r.unit, *figures]
                    )
    return out.getvalue()


def excerpt(runs: list[Run], suite: Suite, group: str) -> list[str]:
    """All rows of a group, of the newest version: each from a run for the record, if it can be, with most rounds."""
    out: list[str] = []
    wanted, told = suite.groups[group], set()

    def rank(run: Run) -> tuple:
        return machine.is_for_the_record(run.facts), int(run.facts.get("rounds", 1)), run.facts["date"]

    for run in sorted(newest(runs), key=rank, reverse=True):
        some = [r for r in rows(run.results, suite) if r.workload in wanted and r.name not in told]
        if not some:
            continue
        keys = {(r.workload, r.case) for r in some}
        found = verdicts.check(suite, run.results, run.version)
        missed = [f"{v.name}, {v.figure:.2f}" for v in found if not v.reached and (v.workload, v.case) in keys]
        out += ["", f"Measured {source(run)}.", "", *row_table([(r, run) for r in some], suite, {})]
        out += ["", f"Targets that were missed: {'; '.join(missed)}."] if missed else []
        told |= {r.name for r in some}
    return out[1:] or ["Not recorded yet."]


def with_block(text: str, lines: list[str], name: str = "README.md") -> str:
    begin, end = MARKERS
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise PublishError(f"{name} must have the markers {begin} and {end}, once each and in this order")
    head, tail = text[: text.index(begin)], text[text.index(end) + len(end) :]
    return head + "\n".join([begin, WRITTEN_BY, "", *wrapped(lines), end]) + tail


def contents(root: Path) -> tuple[dict[Path, str], dict[Path, dict], dict[str, list[Run]]]:
    """What each file should contain, the charts of pictures, and the runs that tables are from, by suite."""
    of_suites = {name: recorded(root / "bench" / "results", suite) for name, suite in SUITES.items()}
    files: dict[Path, str] = {root / SUMMARY: summary(of_suites)}
    charts, shown, tables = {}, {}, []
    for name, runs in of_suites.items():
        suite = SUITES[name]
        if not runs:
            continue
        table = headline.read(root, suite, runs)
        tables += [table] if table else []
        for file in (file for (of, _), file in EXCERPTS.items() if of == name and (root / file).exists()):
            group = next(g for (of, g), f in EXCERPTS.items() if f == file)
            files[root / file] = with_block((root / file).read_text(), excerpt(runs, suite, group), file)
        files[root / MEASURED / f"{name}.md"], own = document(runs, suite, table)
        charts |= {root / MEASURED / file: chart for file, chart in own.items()}
        shown[name] = [table.run] if table else newest(runs)[:1]
    front: list[str] = []
    if tables:
        some = [(t.title, line.what, line.row) for t in tables for line in t.lines]
        charts[root / PICTURE] = drawings.ratios(some, BETTER)
        pages = ", ".join(f"[{SUITES[n].title}]({MEASURED}/{n}.md)" for n, runs in of_suites.items() if runs)
        *body, where = headline.render(tables)
        front = [f"![Ratios to the best of the others]({PICTURE})", "", *body, f"{where} More: {pages}."]
    files[root / "README.md"] = with_block((root / "README.md").read_text(), front)
    return files, charts, shown


def not_packed(root: Path) -> list[Path]:
    """Recorded runs that are folders still."""
    results = root / "bench" / "results"
    return [path for path in run_paths(results) if path.is_dir()] if results.exists() else []


def is_drawn(path: Path, chart: dict) -> bool:
    return path.exists() and drawings.digest(chart) in path.read_text().split("\n", 1)[0]


def command(check: bool, release: bool = False, root: Path = ROOT) -> int:
    try:
        files, charts, shown = contents(root)
    except (BadFolder, OSError, headline.HeadlineError) as error:
        raise PublishError(str(error)) from None
    wrong = {path: text for path, text in files.items() if not path.exists() or path.read_text() != text}
    undrawn = {path: chart for path, chart in charts.items() if not is_drawn(path, chart)}
    loose, old = not_packed(root), False
    for name, runs in shown.items():
        for why in filter(None, (changed_since(run, SUITES[name], root) for run in runs)):
            print(f"note  {MEASURED}/{name}.md: {why}", file=sys.stderr)
            old = True
    if check:
        for path in (*loose, *wrong, *undrawn):
            print(
                f"{path.relative_to(root)}: not what bench/results says; run `tools/bench --publish`", file=sys.stderr
            )
        return int(bool(loose or wrong or undrawn or (release and old)))
    if undrawn:
        pictures = drawings.svg_files(undrawn)
        if pictures is None:
            raise PublishError("pictures cannot be drawn: the chart library could not be fetched")
        wrong |= pictures
    for path in loose:
        print(f"wrote {pack(path).relative_to(root)}", file=sys.stderr)
    for path, text in wrong.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(root)}", file=sys.stderr)
    return 0
