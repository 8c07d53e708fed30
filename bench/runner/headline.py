# SPDX-License-Identifier: MIT
"""The short tables of README.md: rows that bench/headline.toml names, as absolute figures beside rivals of the same
run, what we win first. Each row is taken from the recorded run, of the newest version of OCaml, that has most rounds of
it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .results import Run
from .text import markdown_table, number

FILE = "bench/headline.toml"
SCALES = {"ns": ("us", 1000.0), "us": ("ms", 1000.0), "ms": ("s", 1000.0), "B": ("KB", 1000.0), "MB": ("GB", 1000.0)}
SPELLED = {"us": "µs"}


class HeadlineError(Exception):
    pass


@dataclass(frozen=True)
class Line:
    what: str
    why: str
    values: tuple[float | None, ...]  # in the order of the columns; ours, then the one that decides
    unit: str
    rounds: int
    run: Run

    @property
    def is_lost(self) -> bool:
        ours, theirs = self.values[:2]
        return ours is not None and theirs is not None and ours > theirs


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    lines: tuple[Line, ...]


def newest(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.version == runs[0].version] if runs else []


def find(runs: list[Run], row: dict, names: list[str], product: str) -> Line:
    key = tuple(row["figure"])
    having = [
        (min(len(run.results.of(*key, name)) for name in names[:2]), run)
        for run in runs
        if all(run.results.of(*key, name) for name in names[:2])
    ]
    if not having:
        raise HeadlineError(f"{FILE}: no recorded run has {' | '.join(key)} of {names[0]} and {names[1]} ({product})")
    rounds, run = max(having, key=lambda found: (found[0], found[1].facts["date"]))
    values = tuple(run.results.median(*key, name) for name in names)
    return Line(row["what"], row["why"], values, run.results.units[key], rounds, run)


def read(root: Path, suite: str, runs: list[Run]) -> dict[str, Table]:
    """The tables of a suite, by the name of their product."""
    path = root / FILE
    if not path.exists() or not runs:
        return {}
    out = {}
    for product, table in tomllib.loads(path.read_text()).items():
        if table.get("suite", product) != suite:
            continue
        names = list(table["implementations"])
        lines = tuple(find(newest(runs), row, names, product) for row in table["rows"])
        out[product] = Table(tuple(table["implementations"].values()), lines)
    return out


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    while value >= 1000 and unit in SCALES:
        unit, by = SCALES[unit]
        value /= by
    return f"{number(value)} {SPELLED.get(unit, unit)}".strip()


def source(run: Run) -> str:
    f = run.facts
    where = f"{f['date'][:10]}, commit {f['commit']}, OCaml {run.version}, {f['processor']}, {f['cores']} cores"
    found = machine.warnings(f)
    return where + (f". **Not for the record:** {'; '.join(found)}" if found else "")


def cells(line: Line, marks: dict[str, str]) -> list[str]:
    mark = marks[source(line.run)] + ("; one round" if line.rounds == 1 else "")
    return [line.what, *(amount(v, line.unit) for v in line.values), f"{line.why} ({mark})"]


def render(tables: dict[str, Table], titles: dict[str, str]) -> list[str]:
    """The tables, and below them when and where their figures were measured."""
    told = dict.fromkeys(source(line.run) for table in tables.values() for line in table.lines)
    marks = {text: chr(ord("a") + i) for i, text in enumerate(told)}
    out: list[str] = []
    for product, table in tables.items():
        won = [line for line in table.lines if not line.is_lost]
        lost = [line for line in table.lines if line.is_lost]
        header = [titles.get(product, ""), *table.columns, "why it matters"]
        body = [cells(line, marks) for line in won]
        if lost:
            body += [["*where it is slower, or takes more:*", *[""] * (len(header) - 1)]]
            body += [cells(line, marks) for line in lost]
        out += [*markdown_table(header, body), ""]
    return [*out, *(f"* ({mark}) {text}." for text, mark in marks.items())]
