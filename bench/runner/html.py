# SPDX-License-Identifier: MIT
"""The report: one self-contained page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import count, zip_longest
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from . import charts, headline, machine, text
from .compiler import BENCH, BUILDS, ROOT
from .model import Suite, Workload
from .results import Results, Run
from .rows import Row, groups, rows
from .verdicts import Verdict, distance

TEMPLATE = Path(__file__).with_name("report.html.j2")
MOST_FIRST = 10  # plots that the report opens with
OTHER_BUILDS = {b.label for b in BUILDS.values() if b.label}


@dataclass(frozen=True)
class Block:
    """Of one workload."""

    anchor: str
    workload: Workload
    metric: str
    panels: list[charts.Panel]
    curves: list[charts.Curves]
    lanes: list[charts.Lanes]
    tables: list[tuple[str, list[str], list[list[str]]]]
    program: str


@dataclass(frozen=True)
class Coverage:
    names: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]  # implementation, cells: (mark, reason)
    reasons: list[tuple[str, str]]  # mark, reason


@dataclass(frozen=True)
class First:
    """A plot that the report opens with."""

    suite: Suite
    run: Run
    what: str
    why: str
    panel: charts.Panel


@dataclass(frozen=True)
class Section:
    anchor: str
    suite: Suite
    run: Run
    title: str
    warnings: list[str]
    groups: list
    lost: list[Row]
    won: list[Row]
    sections: list[tuple[str, list[Block]]]
    time: list[charts.Curves]
    verdicts: list[Verdict]
    coverage: Coverage
    rounds: str


def anchor_of(*parts: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", " ".join(parts).lower()).strip("-")


def main_panels(results: Results, suite: Suite, workload: Workload) -> tuple[str, list[charts.Panel]]:
    metric, panels = "", []
    for case in results.cases(workload.name):
        chosen = charts.headline(results, suite, workload, case)
        if chosen and (panel := charts.panel(results, suite, workload, case, chosen)):
            floor = suite.floors.get(workload.name, "")
            left = (
                distance(
                    results,
                    workload.name,
                    case,
                    chosen,
                    suite.ours_of(workload.name),
                    suite.base_of(workload.name),
                    floor,
                )
                if floor
                else None
            )
            said = (
                ""
                if not left
                else "at the floor"
                if left.at_floor
                else f"{text.times(left.value)} of {suite.base_title}’s distance to the floor"
            )
            panels.append(charts.Panel(case, panel.unit, panel.bars, panel.floor, said, panel.lost))
            metric = metric or chosen
    return metric, panels


def blocks(run: Run, suite: Suite, prefix: str, anchors: Names) -> list[tuple[str, list[Block]]]:
    tables: dict[str, list] = {}
    for workload, case, header, body in text.tables(run.results, suite):
        tables.setdefault(workload.name, []).append((case, header, body))
    titles = {w: title for title, names in suite.groups.items() for w in names}
    out: dict[str, list[Block]] = {title: [] for title in suite.groups}
    for workload in suite.workloads.values():
        if workload.name not in tables:
            continue
        folders = (BENCH / "workloads" / suite.name, BENCH / "workloads")
        source = next((p for f in folders if (p := f / f"{workload.source}.ml").exists()), folders[0])
        metric, panels = main_panels(run.results, suite, workload)
        out.setdefault(titles.get(workload.name, "More"), []).append(
            Block(
                anchors.new(f"{prefix}.{anchor_of(workload.name)}"),
                workload,
                metric,
                panels,
                charts.distributions(run.results, suite, workload),
                charts.time_lines(run, suite, workload),
                tables[workload.name],
                str(source.relative_to(ROOT)) if source.exists() else "",
            )
        )
    return [(title, some) for title, some in out.items() if some]


def why_empty(run: Run, suite: Suite, implementation: str, workload: str) -> str:
    named = suite.why_not.get((implementation, workload)) or suite.why_not.get((implementation, ""))
    measured = next(
        (a.why for a in run.results.absent if a.workload == workload and a.implementation in ("", implementation)), None
    )
    entry = suite.implementations[implementation]
    if getattr(entry, "ocaml5_only", False) and run.version.startswith("4."):
        return "OCaml 5 only"
    if (versions := getattr(entry, "versions", "")) and not run.version.startswith(versions):
        return f"OCaml {versions}x only"
    cases = [c for c in suite.workloads[workload].cases if implementation in c.implementations]
    if measured or not cases:
        return measured or named or "not compared in this workload"
    if not any(run.facts["mode"] in c.modes for c in cases):
        return f"{' and '.join(sorted({m for c in cases for m in c.modes}))} mode only"
    return run.facts.get("left out") or "added after this run, or not asked for in it"


def coverage(run: Run, suite: Suite) -> Coverage:
    names = [w for w in suite.workloads if run.results.cases(w)]
    marks: dict[str, str] = {}
    out = []
    for i in suite.implementations:
        cells = []
        for w in names:
            if any(run.results.of(w, c, m, i) for c in run.results.cases(w) for m in run.results.metrics(w, c)):
                cells.append(("●", "measured"))
            else:
                why = why_empty(run, suite, i, w)
                cells.append((marks.setdefault(why, str(len(marks) + 1)), why))
        out.append((i, cells))
    return Coverage(names, out, [(mark, why) for why, mark in marks.items()])


def first_plots(runs: list[tuple[Suite, Run]]) -> list[First]:
    """The rows of README.md that these runs have, of each of its tables in turn; or else the first workloads."""
    by_suite: dict[str, list[Run]] = {}
    for suite, run in runs:
        by_suite.setdefault(suite.name, []).append(run)
    suites = {suite.name: suite for suite, _ in runs}
    tables = [(name, t) for name, some in by_suite.items() for t in headline.read(ROOT, name, some, strict=False)]
    turns = zip_longest(*([(name, t.title, line) for line in t.lines] for name, t in tables))
    out = []
    for name, title, line in (found for turn in turns for found in turn if found):
        workload, case, metric = line.key
        if panel := charts.panel(line.run.results, suites[name], suites[name].workloads[workload], case, metric):
            out.append(First(suites[name], line.run, f"{title}: {line.what}", line.why, panel))
    if not out:
        for suite, run in runs:
            for workload in (w for w in suite.workloads.values() if run.results.cases(w.name)):
                metric, panels = main_panels(run.results, suite, workload)
                what = f"{workload.name}: {metric}"
                out += [First(suite, run, what, f"{p.title}. {workload.note}".strip(". "), p) for p in panels[:1]]
    return out[:MOST_FIRST]


def rounds_of(run: Run) -> str:
    counts = sorted({len(v) for v in run.results.values.values()})
    return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(*counts)


class Names:
    """No two are the same: the second has a number behind it."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def new(self, wanted: str, between: str = "-") -> str:
        tried = (wanted if n == 1 else f"{wanted}{between}{n}" for n in count(1))
        name = next(name for name in tried if name not in self.taken)
        self.taken.add(name)
        return name


@dataclass(frozen=True)
class Taken:
    """Of a page."""

    titles: Names
    anchors: Names


def section(suite: Suite, run: Run, taken: Taken) -> Section:
    all_rows = rows(run.results, suite)
    named = machine.short_name(run.facts)
    part = run.name.removeprefix(named).strip("-")  # of a run of some workloads
    title = taken.titles.new(
        f"{suite.title}, OCaml {run.version}, {machine.readable(run.facts)}{': ' + part if part else ''}", ", "
    )
    prefix = taken.anchors.new(anchor_of(suite.name, run.version, named, part))
    lost = [r for r in all_rows if r.ratio.value > 1]
    return Section(
        prefix,
        suite,
        run,
        title,
        machine.warnings(run.facts),
        groups(all_rows, suite),
        lost,
        [r for r in all_rows if r.ratio.value <= 1],
        blocks(run, suite, prefix, taken.anchors),
        charts.over_time(run, suite),
        suite.check(run.results, run.version),
        coverage(run, suite),
        rounds_of(run),
    )


def code(line: str) -> Markup:
    """`code` in a line of prose."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(line, quote=False)))


def caveats(suite: Suite) -> list[Markup]:
    return [code(" ".join(item.split())) for item in re.split(r"^\* ", suite.caveats, flags=re.M) if item.strip()]


def page(runs: list[tuple[Suite, Run]]) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "times": text.times,
        "interval": text.interval,
        "number": text.number,
        "code": code,
        "shade": charts.shade,
    }
    taken = Taken(Names(), Names())
    sections = [section(suite, run, taken) for suite, run in runs]
    html = environment.get_template(TEMPLATE.name).render(
        first=first_plots(runs),
        sections=sections,
        caveats=caveats,
        intervals=text.INTERVALS,
        suites=list({s.suite.name: s.suite for s in sections}.values()),
    )
    return "\n".join(line.rstrip() for line in html.splitlines() if line.strip()) + "\n"


def picture(chosen: list[tuple[Row, Run]], suite: Suite) -> str:
    """Of rows with the runs that they are from."""
    runs = list({id(run): run for _, run in chosen}.values())
    cases = {w: list(dict.fromkeys(c for run in runs for c in run.results.cases(w))) for w in suite.workloads}
    return charts.picture([row for row, _ in chosen], cases, suite, OTHER_BUILDS)


def curve(runs: list[Run], suite: Suite) -> tuple[charts.Curves, Run] | None:
    """The curve of a suite's page, and the run that it is from: the newest that has it."""
    workload, case = suite.curve or ("", "")
    for run in sorted(runs, key=lambda run: run.facts["date"], reverse=True) if workload else []:
        spread = [c for c in charts.distributions(run.results, suite, suite.workloads[workload]) if c.title == case]
        for found in (
            *spread,
            *(c for c in charts.over_time(run, suite) if c.title.startswith(f"{workload}, {case}:")),
        ):
            return found, run
    return None
