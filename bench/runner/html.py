# SPDX-License-Identifier: MIT
"""The report: one self-contained page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from . import charts, machine, papers, text
from .compiler import BENCH, BUILDS, ROOT
from .model import Suite, Workload
from .results import Results, Run
from .rows import Row, groups, rows
from .verdicts import Verdict, distance

TEMPLATE = Path(__file__).with_name("report.html.j2")
OTHER_BUILDS = {b.label for b in BUILDS.values() if b.label}


@dataclass(frozen=True)
class Block:
    """Of one workload."""

    anchor: str
    workload: Workload
    metric: str
    panels: list[charts.Panel]
    curves: list[charts.Curves]
    tables: list[tuple[str, list[str], list[list[str]]]]
    program: str


@dataclass(frozen=True)
class Coverage:
    names: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]  # implementation, cells: (mark, reason)
    reasons: list[tuple[str, str]]  # mark, reason


@dataclass(frozen=True)
class Paper:
    title: str
    source: str
    rows: list[tuple[str, str, str, str, str]]  # implementation, published s, ratio to OCaml, here s, ratio


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
    papers: list[Paper]
    page_table: list[tuple[str, str, str]]
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


def published(run: Run, suite: Suite) -> list[Paper]:
    if suite.name != "boxroot":
        return []
    out = []
    for p in (p for p in papers.PUBLISHED if run.version.startswith(f"{p.generation}.")):
        cases = run.results.cases(p.workload)
        if not cases or p.workload not in suite.workloads:
            continue
        case = cases[-1] if p.workload != "synthetic" else next((c for c in cases if c == "N=8"), cases[0])
        here = {i: run.results.median(p.workload, case, p.metric, i) for i in (suite.ours, *p.seconds)}
        body = []
        for i in (suite.ours, *p.seconds):
            theirs, ours = p.seconds.get(i), here.get(i)
            body.append(
                (
                    i,
                    f"{theirs:g} s" if theirs else "",
                    text.times(theirs / p.seconds["ocaml"]) if theirs else "",
                    f"{text.number(ours)} s" if ours else "",
                    text.times(ours / here["ocaml"]) if ours and here.get("ocaml") else "",
                )
            )
        out.append(Paper(f"{p.workload}{', ' + case if case else ''}", p.source, body))
    return out


def page_table(run: Run, suite: Suite) -> list[tuple[str, str, str]]:
    out = []
    if suite.name == "outheap":
        for what, figure, workload, case, metric, ours, base, version in papers.PAGE_TABLE:
            if run.version.startswith(version) and (ratio := run.results.ratio(workload, case, metric, ours, base)):
                out.append((what, figure, f"{text.times(ratio.value)} ({text.interval(ratio)})"))
    return out


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
    part = run.folder.name.removeprefix(named).strip("-")  # of a run of some workloads
    title = taken.titles.new(
        f"{suite.title}, OCaml {run.version}, {machine.shown(run.facts)}{': ' + part if part else ''}", ", "
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
        suite.check(run.results, run.version) if run.facts["mode"] != "grid" else [],
        published(run, suite),
        page_table(run, suite),
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
        sections=sections, caveats=caveats, suites=list({s.suite.name: s.suite for s in sections}.values())
    )
    return "\n".join(line.rstrip() for line in html.splitlines() if line.strip()) + "\n"


def picture(some_rows: list[Row], runs: list[Run], suite: Suite) -> str:
    """Of rows out of these runs."""
    cases = {w: list(dict.fromkeys(c for run in runs for c in run.results.cases(w))) for w in suite.workloads}
    return charts.picture(some_rows, cases, suite, OTHER_BUILDS)
