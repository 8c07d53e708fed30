# SPDX-License-Identifier: MIT
"""Writes the block of measured figures in README.md from the raw data in bench/results/: every row of this library
beside 0.4.0, those first in which 0.4.0 is better. No figure in that block is written by hand."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

from . import targets
from .build import ROOT
from .measure import Results
from .report import markdown_table, number, read_facts, read_raw
from .suite import IMPLEMENTATIONS, OURS, RIVAL, WORKLOADS

RESULTS, PRODUCT = ROOT / "bench" / "results", "boxroot"
README = ROOT / "README.md"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"
BESIDE = (
    "floor",
    "generational",
    "ocaml",
    "ocaml_ref",
    "ocaml_list",
    "ocaml_array",
    "camllocal",
    "malloc",
)  # others that a row names


LOST = "values lost"  # a metric of workloads that count what a rival failed to keep alive


class PublishError(Exception):
    pass


@dataclass(frozen=True)
class Row:
    """One figure of this library beside that of 0.4.0. `rounds`: least and greatest ratio within one round, when there
    were several."""

    name: str
    unit: str
    ours: float
    theirs: float
    rounds: tuple[float, float] | None
    others: tuple[tuple[str, float], ...]

    @property
    def ratio(self) -> float:
        """Of the medians. Memory can shrink: then the sign of the figures decides."""
        if self.theirs > 0:
            return max(self.ours, 0.0) / self.theirs
        return 1.0 if self.ours <= self.theirs else float("inf")

    @property
    def sure(self) -> bool:
        """All rounds on the same side."""
        return self.rounds is not None and (self.rounds[0] > 1) == (self.rounds[1] > 1) == (self.ratio > 1)

    def cells(self) -> list[str]:
        ratio = "–" if self.ratio == float("inf") else f"{self.ratio:.2f}"
        spread = f"{self.rounds[0]:.2f}–{self.rounds[1]:.2f}" if self.rounds else "one round"
        others = ", ".join(f"{name} {number(value)}" for name, value in self.others)
        return [
            self.name,
            number(self.ours) + (f" {self.unit}" if self.unit else ""),
            number(self.theirs),
            f"**{ratio}**" if self.ratio > 1 else ratio,
            spread,
            others,
        ]


def rows(results: Results) -> list[Row]:
    """Every figure that both have and of which less is better, the greatest ratio first."""
    out = []
    for workload in WORKLOADS.values():
        for case in results.cases(workload.name):
            for metric in results.metrics(workload.name, case):
                key = workload.name, case, metric
                ours, theirs = (results.values.get((*key, i)) for i in (OURS, RIVAL))
                if not ours or not theirs or not workload.compared(metric):
                    continue
                single = [ours[r] / theirs[r] for r in ours if theirs.get(r, 0) > 0]
                others = tuple((i, results.median(*key, i)) for i in BESIDE if results.values.get((*key, i)))
                name = f"{workload.name}{' (' + case + ')' if case else ''}: {metric}"
                if results.median(workload.name, case, LOST, RIVAL):
                    name += " †"
                out.append(
                    Row(
                        name,
                        results.units[key],
                        median(ours.values()),
                        median(theirs.values()),
                        (min(single), max(single)) if len(single) > 1 else None,
                        others,
                    )
                )
    return sorted(out, key=lambda row: -row.ratio)


HEADER = ["", "this library", "0.4.0", "ratio", "in single rounds", "others"]
NOT_A_LINE = ("date", "commit", "mode", "rounds", "OCaml", "left out")  # facts that are told otherwise


def about(facts: dict[str, str]) -> list[str]:
    """What a reader must know about a run."""
    out = [
        f"Measured {facts['date']} at commit {facts['commit']} with OCaml {facts['OCaml']}; {facts['mode']} mode, "
        f"rounds: {facts['rounds']} at most.",
        "",
    ]
    out += [
        f"* {name}: {'`' + value + '`' if name.startswith('C code') else value}"
        for name, value in facts.items()
        if value and name not in NOT_A_LINE
    ]
    return out + ([f"* not measured: {facts['left out']}"] if facts.get("left out") else [])


def of_version(folder: Path, heading: str) -> list[str]:
    facts, results = read_facts(folder / "facts.json"), read_raw(folder / "raw.csv")
    all_rows = rows(results)
    if not all_rows:
        raise PublishError(f"{folder}: no figure of {OURS} beside {RIVAL}")
    lost, won = [r for r in all_rows if r.ratio > 1], [r for r in all_rows if r.ratio <= 1]
    verdicts = targets.check(results, not facts["OCaml"].startswith("4."))
    missed = sum(v[1] > v[2] for v in verdicts)
    out = [heading, "", *about(facts), ""]
    out += [
        f"Of {len(all_rows)} rows 0.4.0 is better in {len(lost)}, in {sum(r.sure for r in lost)} of them in every round; "
        f"this library in {len(won)}, in {sum(r.sure for r in won)} of them in every round. "
        f"{missed} of {len(verdicts)} targets are missed (`{shown(folder)}/report.md`).",
        "",
    ]
    if any(r.name.endswith("†") for r in all_rows):
        out += ["† 0.4.0 lost values in this program, so that it had less to do.", ""]
    if lost:
        out += ["0.4.0 is better:", "", *markdown_table(HEADER, [r.cells() for r in lost]), ""]
    if won:  # folded: what is lost is what a reader must see
        title = f"This library is better, or both are the same ({len(won)} rows)"
        table = markdown_table(HEADER, [r.cells() for r in won])
        out += [f"<details><summary>{title}</summary>", "", *table, "", "</details>", ""]
    return out


GRID = "pacing"
GRID_HEADER = ["", "geometric mean", "least", "greatest", "where"]


def grid(results: Results) -> list[list[str]]:
    """Of each figure, the ratios to 0.4.0 over all settings."""
    table, cases = [], results.cases(GRID)
    for metric in results.metrics(GRID, cases[0]) if cases else []:
        ratios = {c: r for c in cases if (r := results.ratio(GRID, c, metric, OURS)) and WORKLOADS[GRID].shown(metric)}
        if ratios:
            worst = max(ratios, key=ratios.get)
            table.append(
                [
                    metric,
                    f"{geometric_mean(ratios.values()):.2f}",
                    f"{min(ratios.values()):.2f}",
                    f"{ratios[worst]:.2f}",
                    worst,
                ]
            )
    return table


def of_grid(folder: Path) -> list[str]:
    facts, results = read_facts(folder / "facts.json"), read_raw(folder / "raw.csv")
    return [
        f"### The GC's pace, OCaml {facts['OCaml'].split(',')[0]}",
        "",
        *about(facts),
        "",
        f"Ratios to 0.4.0 over {len(results.cases(GRID))} settings (`{shown(folder)}/report.md` has each):",
        "",
        *markdown_table(GRID_HEADER, grid(results)),
        "",
    ]


def shown(folder: Path) -> Path:
    return folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder


def wrapped(line: str) -> str:
    """Prose in lines of 120 characters; tables as they are."""
    return (
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


def version_key(folder: Path) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", folder.name))


def block(results: Path = RESULTS) -> str:
    folders = sorted(results.glob(f"{PRODUCT}-*"), key=version_key, reverse=True)
    if not folders:
        raise PublishError(f"no folder {PRODUCT}-VERSION in {results}: run `tools/bench --record` first")
    for folder in folders:
        if missing := [name for name in ("raw.csv", "facts.json") if not (folder / name).exists()]:
            raise PublishError(f"{folder} has no {' and no '.join(missing)}: measure again with `tools/bench --record`")
    out = [
        BEGIN,
        "<!-- Written by `tools/bench --publish` from the raw data in bench/results; changes by hand are lost. -->",
        "",
    ]
    if (folders[0] / "ratios.svg").exists():
        out += [f"![ratios to 0.4.0]({shown(folders[0])}/ratios.svg)", ""]
    out += [
        "A row has the medians over the rounds of one run, the ratio of these medians (below 1, this library is better; "
        "bold, 0.4.0 is), and the least and greatest ratio within one round, in which both ran directly after each "
        "other. What each row measures: `bench/README.md`. Others in the last column: "
        + "; ".join(f"`{i}`, {IMPLEMENTATIONS[i].note}" for i in BESIDE)
        + ".",
        "",
    ]
    for n, folder in enumerate(folders):
        version = folder.name.removeprefix(f"{PRODUCT}-")
        if n == 0:
            out += of_version(folder, f"### OCaml {version}")
        else:
            out += [
                "<details>",
                f"<summary>OCaml {version}</summary>",
                "",
                *of_version(folder, f"### OCaml {version}"),
                "</details>",
                "",
            ]
    for folder in sorted(results.glob(f"{GRID}-*"), key=version_key, reverse=True):
        out += of_grid(folder)
    return "\n".join([*(wrapped(line) for line in out), END])


def main(arguments: list[str]) -> int:
    p = argparse.ArgumentParser(prog="bench publish", description=__doc__)
    p.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 when the file does not say what the data say"
    )
    p.add_argument(
        "--from",
        dest="results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="folder with boxroot-VERSION (default: bench/results)",
    )
    p.add_argument("--into", type=Path, default=README, metavar="FILE", help="(default: README.md)")
    options = p.parse_args(arguments)
    try:
        text = options.into.read_text()
        if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
            raise PublishError(f"{options.into} must have the markers {BEGIN} and {END}, once each and in this order")
        new = text[: text.index(BEGIN)] + block(options.results.resolve()) + text[text.index(END) + len(END) :]
    except (PublishError, OSError) as error:
        print(f"bench publish: {error}", file=sys.stderr)
        return 2
    if options.check:
        if new != text:
            print(
                f"{options.into}: the measured figures are not those of bench/results; run `tools/bench --publish`",
                file=sys.stderr,
            )
        return int(new != text)
    options.into.write_text(new)
    return 0
