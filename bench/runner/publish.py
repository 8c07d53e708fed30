# SPDX-License-Identifier: MIT
"""Writes every measured figure of the documents from the raw data in bench/results/, and from nothing else: the short
tables in README.md, all rows in docs/, the report and the pictures in bench/report/."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean

from . import headline, html, machine
from .compiler import ROOT
from .model import Suite
from .results import BadFolder, Run, read_run
from .rows import HEADER, Row, groups, rows
from .suites import SUITES
from .text import markdown_table, times

RESULTS = ROOT / "bench" / "results"
REPORT = "bench/report"
MARKERS = ("<!-- measured:begin -->", "<!-- measured:end -->")  # of the tables in README.md
# The rows of a group of workloads, in a document about it.
EXCERPTS = {
    ("outheap", "Regions"): ("docs/regions.md", MARKERS),
    ("outheap", "Hash-consing"): ("docs/hashcons.md", MARKERS),
}
DOCUMENTS = {"boxroot": "docs/measured.md", "outheap": "docs/measured-outheap.md", "rust": "docs/measured-rust.md"}
WRITTEN_BY = "<!-- Written by `tools/bench --publish` from the raw data in bench/results; changes by hand are lost. -->"
GRID, GRID_HEADER = "pacing", ["", "geometric mean", "least", "greatest", "where"]
NOT_A_LINE = ("date", "commit", "mode", "OCaml", "left out", "complete", "rounds")  # facts that are told otherwise


class PublishError(Exception):
    pass


def version_key(run: Run) -> tuple:
    """The newest version first; of a version, the runs that are named by their machine alone before those of a part."""
    part = run.folder.name != machine.short_name(run.facts)
    return tuple(-int(n) for n in re.findall(r"\d+", run.version)), part


def recorded(results: Path, suite: Suite) -> list[Run]:
    """All runs of a suite, the newest version of OCaml first, and the newest main run of a version before others."""
    folders = sorted(p.parent for p in (results / suite.name).glob("*/*/raw.csv")) if results.exists() else []
    runs = sorted((read_run(folder) for folder in folders), key=lambda run: run.facts["date"], reverse=True)
    return sorted(runs, key=version_key)


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


def split(all_rows: list[Row]) -> tuple[list[Row], list[Row]]:
    return [r for r in all_rows if r.ratio.value > 1], [r for r in all_rows if r.ratio.value <= 1]


def when(run: Run) -> str:
    f = run.facts
    counts = sorted({len(v) for v in run.results.values.values()})
    rounds = "one round" if counts == [1] else f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} rounds"
    return (
        f"Measured {f['date']} at commit {f['commit']}, OCaml {run.version}, {f['processor']} with {f['cores']} cores, "
        f"{f['mode']} mode, {rounds}."
    )


def lower(text: str) -> str:
    return text[0].lower() + text[1:]


def warned(run: Run) -> list[str]:
    found = machine.warnings(run.facts)
    return [f"**Not a run for the record:** {'; '.join(found)}.", ""] if found else []


# --- README.md --------------------------------------------------------------------------------------------------------


ALIKE = (
    "processor",
    "cores",
    "mode",
    "C compiler",
    "C code, build users",
)  # what runs have in common whose rows stand side by side


def best_rows(runs: list[Run], suite: Suite) -> tuple[list[Row], list[Run]]:
    """The rows of the main run, each from the run with most rounds among those on the same machine; and these runs."""
    main = runs[0]
    chosen: dict[str, tuple[Row, Run]] = {}
    for run in runs:
        if run.version == main.version and all(run.facts.get(name) == main.facts.get(name) for name in ALIKE):
            for row in rows(run.results, suite):
                if row.name not in chosen or row.ratio.rounds > chosen[row.name][0].ratio.rounds:
                    chosen[row.name] = row, run
    used = [run for run in runs if any(run is of for _, of in chosen.values())]
    return sorted((row for row, _ in chosen.values()), key=lambda row: -row.ratio.value), used


def not_grids(runs: list[Run]) -> list[Run]:
    return [r for r in runs if r.facts["mode"] != "grid"]


TITLES = {"boxroot": "roots", "rust": "Rust", "outheap": "heap", "regions": "regions", "hashcons": "hash-consing"}


def summary(of_suites: dict[str, list[Run]], root: Path) -> list[str]:
    """The tables of README.md."""
    tables: dict[str, headline.Table] = {}
    for name, runs in of_suites.items():
        tables |= headline.read(root, name, not_grids(runs))
    if not tables:
        return []
    documents = ", ".join(f"[{SUITES[n].title}]({DOCUMENTS[n]})" for n, runs in of_suites.items() if runs)
    return [
        *headline.render(tables, TITLES),
        f"* All rows: {documents}; plots, in a clone: `{REPORT}/index.html`.",
    ]


def of_groups(all_rows: list[Row], suite: Suite) -> list[str]:
    beside = [f"beside {peer}" for peer in suite.peers]
    base = "better" if suite.base_words == suite.base_title else "or the named one better"
    return markdown_table(
        [
            "workloads",
            "geometric mean",
            *beside,
            "rows",
            f"{suite.title} better or equal",
            f"{suite.base_title} {base}",
            "rounds",
        ],
        [
            [
                g.title,
                times(g.mean),
                *("" if p is None else times(p) for p in g.peers),
                str(g.rows),
                str(g.rows - g.lost),
                str(g.lost),
                g.rounds,
            ]
            for g in groups(all_rows, suite)
        ],
    )


# --- docs/ ------------------------------------------------------------------------------------------------------------


def about(run: Run) -> list[str]:
    """What a reader must know about a run."""
    return [
        when(run),
        "",
        *warned(run),
        *(
            f"* {name}: {'`' + value + '`' if name.startswith('C co') else value}"
            for name, value in run.facts.items()
            if value and name not in NOT_A_LINE
        ),
    ]


def of_run(run: Run, suite: Suite, title: str) -> list[str]:
    all_rows = rows(run.results, suite)
    lost, won = split(all_rows)
    verdicts = suite.check(run.results, run.version)
    header = [*HEADER[:1], suite.title, suite.base_title, *HEADER[3:]]
    out = [f"## {title}", "", *about(run), ""]
    out += of_groups(all_rows, suite)
    for which, some in (
        (f"{suite.base_words[0].upper()}{suite.base_words[1:]} is better", lost),
        (f"{suite.title} is better, or both are the same", won),
    ):
        if some:
            out += [
                "",
                f"### {which}: {len(some)} rows, {sum(r.ratio.sure for r in some)} beyond doubt",
                "",
                *markdown_table(header, [r.cells() for r in some]),
            ]
    if verdicts:
        out += ["", f"### Targets: {sum(v.reached for v in verdicts)} of {len(verdicts)} reached", ""]
        out += markdown_table(
            ["missed", "figure", "at most"],
            [[v.name, f"{v.figure:.3f} {v.unit}", f"{v.bound:.3f}"] for v in verdicts if not v.reached],
        )
    if run.results.absent:
        out += ["", "### Not measured", "", *not_measured(run)]
    elif run.facts.get("left out"):
        out += ["", "### Not measured", "", run.facts["left out"]]
    return [*out, ""]


def not_measured(run: Run) -> list[str]:
    why: dict[str, list[str]] = {}
    for a in run.results.absent:
        why.setdefault(a.why, []).append(
            " ".join(part for part in (a.workload, f"({a.case})" if a.case else "", a.implementation) if part)
        )
    return [f"* {reason}: {', '.join(dict.fromkeys(cells))}" for reason, cells in why.items()]


def grid(run: Run, suite: Suite) -> list[list[str]]:
    """Of each figure, the ratios over all settings."""
    table, cases = [], run.results.cases(GRID)
    for metric in run.results.metrics(GRID, cases[0]) if cases else []:
        ratios = {
            c: r.value
            for c in cases
            if (r := run.results.ratio(GRID, c, metric, suite.ours, suite.base)) and 0 < r.value < float("inf")
        }
        if ratios and suite.workloads[GRID].shown(metric):
            worst = max(ratios, key=lambda c: ratios[c])
            table.append(
                [
                    metric,
                    times(geometric_mean(ratios.values())),
                    times(min(ratios.values())),
                    times(ratios[worst]),
                    worst,
                ]
            )
    return table


def document(runs: list[Run], suite: Suite) -> str:
    beside = "; ".join(f"`{i}`, {suite.implementations[i].note}" for i in suite.beside)
    out = [f"# {suite.title}: all that was measured", "", WRITTEN_BY, ""]
    out += [
        "A row has the medians over the rounds of one run, and their ratio: below 1, "
        f"{suite.title} is better; bold, {suite.base_words} is. "
        "The range is a 95 % bootstrap interval of that ratio over the rounds; *beyond doubt* means that it excludes "
        "1. Rows are sorted by ratio: losses come first.",
        "",
    ]
    if suite.floors:
        out += [
            "*Distance to floor*: the same program without roots, or with a bare free list, is the floor. The column "
            "has our time less the floor's, "
            f"over that of {suite.base_title} less the floor's. *At the floor*: within 2 % of it.",
            "",
        ]
    out += [
        f"What each workload measures: `bench/README.md`. Others in the last column: {beside}.",
        "",
    ]
    if any(r.lost_values for run in runs for r in rows(run.results, suite)):
        out += [
            f"† {suite.base_title} lost values in this program, so that it had less to do. "
            "Such rows are not part of the means.",
            "",
        ]
    for run in runs:
        label = run.folder.name
        if run.facts["mode"] == "grid":
            out += [
                f"## OCaml {run.version}: the GC's pace over {len(run.results.cases(GRID))} settings",
                "",
                *about(run),
                "",
                *markdown_table(GRID_HEADER, grid(run, suite)),
                "",
            ]
        else:
            out += of_run(run, suite, f"OCaml {run.version}, {label}")
    return "\n".join(wrapped([*out, "## Caveats", ""])) + "\n" + suite.caveats + "\n"


# --- all files --------------------------------------------------------------------------------------------------------


def excerpt(runs: list[Run], suite: Suite, group: str) -> list[str]:
    """All rows of a group: each from the newest version's run with most rounds."""
    out: list[str] = []
    newest = [run for run in runs if run.version == runs[0].version]
    wanted, told = suite.groups[group], set()
    header = [*HEADER[:1], suite.title, suite.base_title, *HEADER[3:6], HEADER[-1]]
    for run in sorted(newest, key=lambda run: -int(run.facts.get("rounds", 1))):
        some = [r for r in rows(run.results, suite) if r.workload in wanted and r.name not in told]
        if not some:
            continue
        places = {f"({r.workload} {r.case})" for r in some} | {f"({r.workload})" for r in some}
        missed = [
            v
            for v in suite.check(run.results, run.version)
            if not v.reached and any(place in v.name for place in places)
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
    all_runs, of_suites = [], {}
    for suite in SUITES.values():
        runs = recorded(results, suite)
        of_suites[suite.name] = runs
        if not runs:
            continue
        for (name, group), (file, markers) in EXCERPTS.items():
            if name == suite.name and (root / file).exists():
                old = (root / file).read_text()
                files[root / file] = with_block(old, markers, excerpt(runs, suite, group), file)
        files[root / DOCUMENTS[suite.name]] = document(runs, suite)
        if measured := not_grids(runs):  # what the table in README.md has
            files[root / REPORT / f"{suite.name}.svg"] = html.picture(*best_rows(measured, suite), suite)
        all_runs += [(suite, run) for run in runs]
    files[root / REPORT / "index.html"] = html.page(all_runs)
    return {root / "README.md": with_block(readme, MARKERS, summary(of_suites, root)), **files}


def command(check: bool, root: Path = ROOT) -> int:
    try:
        wrong = {path: text for path, text in contents(root).items() if not path.exists() or path.read_text() != text}
    except (BadFolder, OSError, headline.HeadlineError) as error:
        raise PublishError(str(error)) from None
    for path, text in wrong.items():
        if check:
            print(
                f"{path.relative_to(root)}: not what bench/results says; run `tools/bench --publish`", file=sys.stderr
            )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(root)}", file=sys.stderr)
    return int(check and bool(wrong))
