# SPDX-License-Identifier: MIT
"""The short tables of README.md: rows that bench/headline.toml names, as absolute figures beside rivals of the same
run, what we win first; and sentences about a few of them. Each row is taken from the recorded run, of the newest
version of OCaml that is recorded in whole, that has most rounds of it, and runs for the record before others; or from
any, if it was not measured there more than once, or not for the record."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
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
    key: tuple[str, str, str]  # workload, case, metric
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
    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    words: tuple[str, ...]


def version_number(run: Run) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", run.version)))


def newest(runs: list[Run]) -> list[Run]:
    """The runs of the newest version of those on which most was measured, and the same: a version of which a part, or
    other workloads, have been recorded so far does not take the place of one that is recorded in whole."""
    figures: dict[str, set] = {}
    for run in runs:
        figures.setdefault(run.version, set()).update(run.results.units)
    most = max(figures.values(), key=len, default=set())
    whole = [run for run in runs if 4 * len(figures[run.version] & most) > 3 * len(most)]
    return [run for run in whole if run.version == max(whole, key=version_number).version]


def find(runs: list[Run], row: dict, names: list[str], strict: bool = True) -> Line | None:
    """The row, where both that decide were measured. None: its workload has not been recorded at all, as when it is
    new; that one of its figures is missing is an error when the choice is `strict`."""
    key, names = tuple(row["figure"]), row.get("implementations", names)
    having = [
        (min(len(run.results.of(*key, name)) for name in names[:2]), run)
        for run in runs
        if all(run.results.of(*key, name) for name in names[:2])
    ]
    if not having:
        if not strict or not any(run.results.cases(key[0]) for run in runs):
            return None
        raise HeadlineError(f"{FILE}: no recorded run has {' | '.join(key)} of {names[0]} and {names[1]}")
    rounds, run = max(
        having, key=lambda found: (machine.is_for_the_record(found[1].facts), found[0], found[1].facts["date"])
    )
    values = tuple(run.results.median(*key, name) if name else None for name in names)
    return Line(row.get("what", ""), row.get("why", ""), key, values, run.results.units[key], rounds, run)


def of_most_rounds(runs: list[Run], everything: list[Run], row: dict, names: list[str], strict: bool) -> Line | None:
    """The row, from `runs` if it was measured there more than once, for the record; otherwise from the run that has
    most rounds."""

    def rank(line: Line) -> tuple:
        return machine.is_for_the_record(line.run.facts), line.rounds

    line = find(runs, row, names, False)
    if line is not None and rank(line) > (True, 1):
        return line
    other = find(everything, row, names, strict)
    return line if line is not None and (other is None or rank(other) <= rank(line)) else other


def sentence(runs: list[Run], words: dict, names: list[str], strict: bool) -> str | None:
    """With {0}, {1} … in it: the figures of its implementations."""
    line = find(runs, words, names, strict)
    if line is None:
        return None
    return words["text"].format(*(amount(value, line.unit) for value in line.values))


def choice(path: Path) -> dict:
    return tomllib.loads(path.read_text()) if path.exists() else {}


def read(root: Path, suite: str, runs: list[Run], strict: bool = True) -> list[Table]:
    """The tables of a suite. Not `strict`: of some runs, which need not have all their rows."""
    out, everything, runs = [], runs, newest(runs)
    for name, chosen in choice(root / FILE).items() if runs else ():
        if chosen.get("suite", name) == suite:
            names = list(chosen["implementations"])
            found = [of_most_rounds(runs, everything, row, names, strict) for row in chosen["rows"]]
            lines = tuple(line for line in found if line)
            words = tuple(text for w in chosen.get("words", ()) if (text := sentence(runs, w, names, strict)))
            out.append(Table(chosen.get("title", ""), tuple(chosen["implementations"].values()), lines, words))
    return [table for table in out if table.lines]


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    while value >= 1000 and unit in SCALES:
        unit, by = SCALES[unit]
        value /= by
    return f"{number(value)} {SPELLED.get(unit, unit)}".strip()


def software(run: Run) -> str:
    return f", OCaml {run.version}"


def cores(run: Run) -> str:
    return f", {run.facts['cores']} cores"


def source(run: Run) -> str:
    f = run.facts
    processor = re.sub(r"\((R|TM)\)| Processor\b.*", "", f["processor"])
    found = machine.warnings(f)
    warning = f". **Not for the record:** {'; '.join(found)}" if found else ""
    return f"{f['date'][:10]}, commit {f['commit']}, {processor}{cores(run)}{software(run)}{warning}"


def marks_of(runs: list[Run]) -> dict[str, str]:
    """Letters for where and when figures were measured."""
    return {text: chr(ord("a") + i) for i, text in enumerate(dict.fromkeys(map(source, runs)))}


def cells(line: Line, marks: dict[str, str]) -> list[str]:
    mark = marks[source(line.run)] + ("; one round" if line.rounds == 1 else "")
    return [line.what, *(amount(v, line.unit) for v in line.values), f"{line.why} ({mark})"]


def table_lines(table: Table, marks: dict[str, str]) -> list[str]:
    won = [line for line in table.lines if not line.is_lost]
    lost = [line for line in table.lines if line.is_lost]
    header = [table.title, *table.columns, "why it matters"]
    body = [cells(line, marks) for line in won]
    if lost:
        body += [["*where it is slower, or takes more:*", *[""] * (len(header) - 1)]]
        body += [cells(line, marks) for line in lost]
    return markdown_table(header, body)


def sources(marks: dict[str, str], runs: list[Run]) -> str:
    """What all have in common is said once, and so is what most have."""
    by_source = {source(run): run for run in runs}
    said, told, number_of = [], "; ".join(f"({mark}) {text}" for text, mark in marks.items()), len(marks)
    for part in (software, cores):
        common, number = Counter(part(run) for run in by_source.values()).most_common(1)[0]
        if number > 1:
            told = told.replace(common, "")
            said.append(("all" if number == number_of else "the others") + common.replace(",", " with", 1))
    return "; ".join([told, *said]) + "."


def render(tables: list[Table]) -> list[str]:
    """The sentences, the tables, and below them when and where their figures were measured."""
    runs = [line.run for table in tables for line in table.lines]
    marks = marks_of(runs)
    words = " ".join(text for table in tables for text in table.words)
    out = [words, ""] if words else []
    for table in tables:
        out += [*table_lines(table, marks), ""]
    return [*out, "Medians of runs in turn; different runs cannot be compared: " + sources(marks, runs)]
