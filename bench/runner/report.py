# SPDX-License-Identifier: MIT
"""The report: data for the template report.html.j2, which is one self-contained page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import count, zip_longest
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from . import drawings, headline, machine, text, verdicts
from .compiler import BENCH, ROOT
from .model import Suite, Workload
from .results import Results, Run
from .rows import rows

TEMPLATE = Path(__file__).with_name("report.html.j2")
MOST_FIRST = 10  # plots that the report opens with


def anchor_of(*parts: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", " ".join(parts).lower()).strip("-")


@dataclass
class Chart:
    """A drawing with what stands above it."""

    title: str
    what: str
    spec: dict | None
    note: str = ""
    lost_values: bool = False


def standing(results: Results, suite: Suite, workload: Workload, case: str) -> str | None:
    """The metric that stands for a workload."""
    base = suite.base_of(workload.name)
    having = [m for m in results.metrics(workload.name, case) if workload.shown(m)]
    wanted = [m for w, m in suite.headlines if w == workload.name and m in having]
    best = (m for m in having if workload.compared(m) and results.of(workload.name, case, m, base))
    return next(iter([*wanted, *best, *having]), None)


def bars_of(results: Results, suite: Suite, workload: Workload) -> list[Chart]:
    out = []
    for case in results.cases(workload.name):
        metric = standing(results, suite, workload, case)
        spec = drawings.bars(results, suite, workload, case, metric) if metric else None
        if not metric or not spec:
            continue
        key, floor = (workload.name, case, metric), suite.floors.get(workload.name, "")
        ours, base = suite.ours_of(workload.name), suite.base_of(workload.name)
        left = verdicts.distance(results, *key, ours, base, floor) if floor else None
        note = ""
        if left:
            what = f"{text.times(left.value)} of what {suite.base_title} leaves above the floor"
            note = "at the floor" if left.at_floor else what
        unit = results.units[key]
        lost = bool(results.median(workload.name, case, "values lost", base))
        out.append(Chart(case or metric, f"{metric}, {unit}" if case else unit, spec, note, lost))
    return out


def blocks(run: Run, suite: Suite, prefix: str, anchors: Names) -> list[tuple[str, list[dict]]]:
    """Of each group of workloads those that were measured."""
    tables: dict[str, list] = {}
    for workload, case, header, body in text.tables(run.results, suite):
        tables.setdefault(workload.name, []).append((case, header, body))
    titles = {w: title for title, names in suite.groups.items() for w in names}
    out: dict[str, list[dict]] = {title: [] for title in suite.groups}
    for workload in (w for w in suite.workloads.values() if w.name in tables):
        folders = (BENCH / "workloads" / suite.name, BENCH / "workloads")
        source = next((p for f in folders if (p := f / f"{workload.source}.ml").exists()), None)
        charts = bars_of(run.results, suite, workload)
        spread = drawings.distributions(run.results, suite, workload)
        charts += [Chart(case, "distribution, ms", spec) for case, spec in spread]
        out[titles[workload.name]].append(
            {
                "anchor": anchors.new(f"{prefix}.{anchor_of(workload.name)}"),
                "workload": workload,
                "charts": charts,
                "lanes": [Chart(c, "what was done when", s) for c, s in drawings.time_lines(run, suite, workload)],
                "tables": tables[workload.name],
                "program": str(source.relative_to(ROOT)) if source else "",
            }
        )
    return [(title, some) for title, some in out.items() if some]


def why_empty(run: Run, suite: Suite, implementation: str, workload: str) -> str:
    measured = next(
        (a.why for a in run.results.absent if a.workload == workload and a.implementation in ("", implementation)), None
    )
    if why := suite.why_version(implementation, run.version):
        return why
    cases = [c for c in suite.workloads[workload].cases if implementation in c.implementations]
    if measured or not cases:
        return measured or suite.why_not.get((implementation, workload)) or "not compared in this workload"
    if not any(run.facts["mode"] in c.modes for c in cases):
        return f"{' and '.join(sorted({m for c in cases for m in c.modes}))} mode only"
    return run.facts.get("left out") or "added after this run, or not asked for in it"


def coverage(run: Run, suite: Suite) -> dict:
    """Every implementation in every workload: measured, or the number of a reason."""
    names = [w for w in suite.workloads if run.results.cases(w)]
    measured = {(f.implementation, f.workload) for f in run.results.figures}
    marks: dict[str, str] = {}
    out = []
    for i in suite.implementations:
        whys = [None if (i, w) in measured else why_empty(run, suite, i, w) for w in names]
        out.append((i, [("●" if why is None else marks.setdefault(why, str(len(marks) + 1)), why) for why in whys]))
    return {"names": names, "rows": out, "reasons": [(mark, why) for why, mark in marks.items()]}


def first_plots(runs: list[tuple[Suite, Run]]) -> list[Chart]:
    """The rows of README.md that these runs have, of each of its tables in turn; or else the first workloads."""
    by_suite: dict[str, tuple[Suite, list[Run]]] = {}
    for suite, run in runs:
        by_suite.setdefault(suite.name, (suite, []))[1].append(run)
    turns = []
    for suite, some in by_suite.values():
        if table := headline.read(ROOT, suite, some):
            turns.append([(suite, table, line) for line in table.lines])
    out = []
    for suite, table, line in (found for turn in zip_longest(*turns) for found in turn if found):
        row = line.row
        spec = drawings.bars(table.run.results, suite, suite.workloads[row.workload], row.case, row.metric)
        if spec:
            when = f"{suite.title}, OCaml {table.run.version}, {table.run.facts['date'][:10]}"
            out.append(Chart(f"{table.title}: {line.what}", row.unit, spec, f"{line.why}; {when}"))
    if not out:
        for suite, run in runs:
            for workload in (w for w in suite.workloads.values() if run.results.cases(w.name)):
                for chart in bars_of(run.results, suite, workload)[:1]:
                    title = f"{workload.name}: {chart.title}"
                    out.append(Chart(title, chart.what, chart.spec, workload.note))
    return out[:MOST_FIRST]


class Names:
    """No two are the same: the second has a number behind it."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def new(self, wanted: str, between: str = "-") -> str:
        tried = (wanted if n == 1 else f"{wanted}{between}{n}" for n in count(1))
        name = next(name for name in tried if name not in self.taken)
        self.taken.add(name)
        return name


def section(suite: Suite, run: Run, titles: Names, anchors: Names) -> dict:
    all_rows = rows(run.results, suite)
    named = machine.short_name(run.facts)
    part = run.name.removeprefix(named).strip("-")  # of a run of some workloads
    title = f"{suite.title}, OCaml {run.version}, {machine.readable(run.facts)}{': ' + part if part else ''}"
    prefix = anchors.new(anchor_of(suite.name, run.version, named, part))
    return {
        "anchor": prefix,
        "suite": suite,
        "run": run,
        "title": titles.new(title, ", "),
        "warnings": machine.warnings(run.facts),
        "lost": [r for r in all_rows if r.best.ratio.value > 1],
        "won": [r for r in all_rows if r.best.ratio.value <= 1],
        "sections": blocks(run, suite, prefix, anchors),
        "time": [Chart(": ".join(filter(None, key)), "", spec) for key, spec in drawings.over_time(run, suite)],
        "verdicts": sorted(verdicts.check(suite, run.results, run.version), key=lambda v: v.reached),
        "coverage": coverage(run, suite),
        "rounds": headline.rounds_of(run),
    }


def code(line: str) -> Markup:
    """`code` in a line of prose."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(line, quote=False)))


def caveats(suite: Suite) -> list[Markup]:
    return [code(" ".join(item.split())) for item in re.split(r"^\* ", suite.caveats, flags=re.M) if item.strip()]


def page(runs: list[tuple[Suite, Run]], library: str | None) -> str:
    """`library`: JavaScript that draws, or nothing: then the page has its tables, and says so."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shades = {"won": "win", "lost": "lose", "open": "open"}
    environment.filters |= {
        "times": text.times,
        "interval": text.interval,
        "number": text.number,
        "code": code,
        "shade": lambda row: shades[row.verdict],
    }
    charts: list[dict] = []

    def drawn(chart: Chart) -> int:
        """The number of a drawing among the page's data. The configuration is the same for all."""
        charts.append({key: value for key, value in chart.spec.items() if key not in ("config", "$schema")})
        return len(charts) - 1

    titles, anchors = Names(), Names()
    sections = [section(suite, run, titles, anchors) for suite, run in runs]
    return environment.get_template(TEMPLATE.name).render(
        first=first_plots(runs),
        sections=sections,
        caveats=caveats,
        intervals=text.INTERVALS,
        suites=list({s["suite"].name: s["suite"] for s in sections}.values()),
        library=library and library.replace("</script", "<\\/script"),
        charts=charts,
        drawn=drawn,
        config=drawings.TEMPLATES["config"],
        colours=drawings.COLOURS,
        dark=Markup(drawings.dark_style()),
    )
