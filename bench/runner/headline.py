# SPDX-License-Identifier: MIT
"""The short tables of README.md: rows that bench/headline.toml names, at most eight for each product, all from one run:
the one that has most of them, and of these the newest."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from compare.intervals import ENOUGH

from . import machine
from .model import Suite
from .results import Run
from .rows import Row, rows
from .text import amounts, markdown_table

FILE = "bench/headline.toml"
MOST = 8


class HeadlineError(Exception):
    pass


@dataclass(frozen=True)
class Line:
    what: str
    why: str
    row: Row
    values: tuple[float | None, ...]  # in the order of the columns, ours first
    is_lost: bool  # to any column that is not ours with another setting


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    run: Run


def version_number(run: Run) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", run.version)))


def lines_of(run: Run, suite: Suite, table: dict) -> list[Line]:
    having = {(r.workload, r.case, r.metric): r for r in rows(run.results, suite)}
    out = []
    for wanted in table["rows"]:
        key = tuple(wanted["figure"])
        row = having.get(key)
        names = wanted.get("implementations", list(table["implementations"]))
        values = tuple(run.results.median(*key, name) if name else None for name in names)
        others = [v for name, v in zip(names[1:], values[1:]) if v is not None and name not in suite.effects.values()]
        if row and values[0] is not None and others:
            out.append(Line(wanted["what"], wanted["why"], row, values, min(others) < values[0]))
    return out


def read(root: Path, suite: Suite, runs: list[Run]) -> Table | None:
    path = root / FILE
    chosen = tomllib.loads(path.read_text()).get(suite.name) if path.exists() else None
    if not chosen or not runs:
        return None
    if len(chosen["rows"]) > MOST:
        raise HeadlineError(f"{FILE}: more than {MOST} rows for {suite.name}")
    found = [(lines_of(run, suite, chosen), run) for run in runs]

    def rank(pair: tuple[list[Line], Run]) -> tuple:
        lines, run = pair
        return len(lines), machine.is_for_the_record(run.facts), version_number(run), run.facts["date"]

    lines, run = max(found, key=rank)
    measured = {name for run in runs for name in run.results.workloads}
    if wrong := [w["figure"] for w in chosen["rows"] if w["figure"][0] not in suite.workloads]:
        raise HeadlineError(f"{FILE}: there is no workload {wrong[0][0]}")
    if not lines and any(w["figure"][0] in measured for w in chosen["rows"]):
        raise HeadlineError(f"{FILE}: no recorded run has one of the rows of {suite.name}")
    return Table(chosen["title"], tuple(chosen["implementations"].values()), tuple(lines), run) if lines else None


def table_lines(table: Table) -> list[str]:
    """What is better than all columns comes first; without columns that were not measured."""
    used = [n for n in range(len(table.columns)) if any(line.values[n] is not None for line in table.lines)]
    header = [table.title, *(table.columns[n] for n in used), "why it matters"]

    def cells(line: Line) -> list[str]:
        figures = amounts(line.values, line.row.unit)
        return [line.what, *(figures[n] for n in used), line.why]

    body = [cells(line) for line in table.lines if not line.is_lost]
    if lost := [cells(line) for line in table.lines if line.is_lost]:
        body += [["*where another is better:*", *[""] * (len(header) - 1)], *lost]
    return markdown_table(header, body)


def source(run: Run) -> str:
    """The date, commit, version and machine of a run."""
    f = run.facts
    processor = re.sub(r"\((R|TM)\)| Processor\b.*", "", f["processor"])
    found = machine.warnings(f)
    warning = f". **Not for the record:** {'; '.join(found)}" if found else ""
    return (
        f"{f['date'][:10]}, commit {f['commit']}, OCaml {run.version}, {processor}, {f['cores']} cores, "
        f"{rounds_of(run)}{warning}"
    )


def rounds_of(run: Run) -> str:
    counts = sorted({len(v) for v in run.results.values.values()})
    return "one round" if counts == [1] else f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} rounds"


def render(tables: list[Table]) -> list[str]:
    """The tables, and when and where they were measured."""
    out: list[str] = []
    for table in tables:
        out += [*table_lines(table), ""]
    told: dict[str, list[str]] = {}
    for table in tables:
        told.setdefault(source(table.run), []).append(table.title)
    where = "; ".join(f"{', '.join(names)}: {text}" if len(told) > 1 else text for text, names in told.items())
    undecided = (
        ""
        if min(o.ratio.rounds for t in tables for line in t.lines for o in line.row.others) >= ENOUGH
        else (f" With fewer than {ENOUGH} rounds no difference is beyond doubt: these points are grey.")
    )
    return [*out, f"Medians of interleaved runs. Measured {where}.{undecided}"]
