# SPDX-License-Identifier: MIT
"""What the rounds say: ratios with their intervals as a table and as a page, and whether both programs did the same."""

from __future__ import annotations

import html
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from compare import WAYS
from compare.intervals import ENOUGH, Interval, median_interval
from compare.measure import Round

ROWS = {  # name: unit, factor to it
    "time": ("s", 1.0),
    "processor time": ("s", 1.0),
    "user time": ("s", 1.0),
    "system time": ("s", 1.0),
    "peak memory": ("MB", 1 / 1024),
    "resident, mean": ("MB", 1.0),
    "resident, at the end": ("MB", 1.0),
    "minor collections": ("", 1.0),
    "major collections": ("", 1.0),
    "compactions": ("", 1.0),
    "longest pause": ("ms", 1e3),
    "pauses, 99th percentile": ("ms", 1e3),
    "all pauses": ("ms", 1e3),
}


@dataclass
class Row:
    name: str
    unit: str
    stock: float
    variant: float
    ratio: float | None
    interval: Interval | None  # there is one when there is a ratio

    @property
    def verdict(self) -> str:
        if self.interval is None or not self.interval.decides:
            return ""
        same = self.interval.low == self.interval.high == 1
        return {-1: "less", 0: "equal" if same else "undecided", 1: "more"}[self.interval.side]


def kind_of(name: str) -> str:
    """In which rounds this is measured."""
    return "paused" if "pause" in name else "resident" if name.startswith("resident") else "timed"


def rows_of(rounds: list[Round]) -> list[Row]:
    rows = []
    for name, (unit, factor) in ROWS.items():
        measured = [r.samples for r in rounds if r.kind == kind_of(name)]
        pairs = [tuple(samples[way].figures.get(name) for way in WAYS) for samples in measured]
        if not pairs or any(value is None for pair in pairs for value in pair):
            continue
        stock, variant = (statistics.median(column) * factor for column in zip(*pairs))
        ratios = [b / a for a, b in pairs if a > 0]
        if stock == variant == 0:
            continue
        if len(ratios) < len(pairs):
            rows.append(Row(name, unit, stock, variant, None, None))
        else:
            rows.append(Row(name, unit, stock, variant, statistics.median(ratios), median_interval(ratios)))
    return rows


def about_intervals(rows: list[Row], rounds: list[Round]) -> list[str]:
    """How far they can be relied on."""
    lines = []
    kinds = {"timed": "intervals", "paused": "intervals of pauses", "resident": "intervals of resident memory"}
    for kind, name in kinds.items():
        of_kind = [r.interval for r in rows if r.interval and kind_of(r.name) == kind]
        if of_kind:
            n = sum(r.kind == kind for r in rounds)
            hold = int(of_kind[0].coverage * 100)
            few = "" if of_kind[0].decides else f": too few rounds to decide, {ENOUGH} or more do"
            lines.append(f"{name}: {n} rounds; {hold} % of such intervals or more hold the true median{few}")
    return lines


def number(value: float, unit: str) -> str:
    text = f"{value:.0f}" if not unit or value >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def table(rows: list[Row], names: dict[str, str]) -> str:
    """With bars around 1, from 0.5 to 1.5: `=` the interval, `O` the ratio."""
    width = 41

    def bar(row: Row) -> str:
        if row.ratio is None or row.interval is None:
            return ""
        place = lambda x: min(width - 1, max(0, round((x - 0.5) * (width - 1))))  # noqa: E731
        cells = ["."] * width
        cells[place(1)] = "|"
        for i in range(place(row.interval.low), place(row.interval.high) + 1):
            cells[i] = "="
        cells[place(row.ratio)] = "O"
        return "".join(cells)

    lines = [("", *(names[way] for way in WAYS), "ratio", "interval", "0.5" + "1".center(width - 6) + "1.5", "")]
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
        between = f"{row.interval.low:.2f}-{row.interval.high:.2f}" if row.interval else "-"
        shown = (number(row.stock, row.unit), number(row.variant, row.unit), ratio, between, bar(row), row.verdict)
        lines.append((row.name, *shown))
    widths = [max(len(line[i]) for line in lines) for i in range(7)]
    aligned = (str.ljust, str.rjust, str.rjust, str.rjust, str.rjust, str.ljust, str.ljust)
    return "\n".join("  ".join(f(c, w) for f, c, w in zip(aligned, line, widths)).rstrip() for line in lines)


def picture(rows: list[Row], title: str, notes: list[str], names: dict[str, str], memory: str) -> str:
    """A page with the table and the same bars as SVG. `memory`: the picture of memory over time, if there is one."""
    shown = [(row, row.interval) for row in rows if row.interval is not None and row.ratio is not None]
    left, scale, step = 190, 400, 28
    height = step * len(shown) + 40
    x = lambda r: left + (min(1.5, max(0.5, r)) - 0.5) * scale  # noqa: E731
    parts = [f'<svg width="{left + scale + 60}" height="{height}" font-family="sans-serif" font-size="13">']
    for mark in (0.5, 0.75, 1.0, 1.25, 1.5):
        colour = "#444" if mark == 1 else "#ccc"
        parts.append(f'<line x1="{x(mark)}" x2="{x(mark)}" y1="8" y2="{height - 24}" stroke="{colour}"/>')
        parts.append(f'<text x="{x(mark)}" y="{height - 8}" text-anchor="middle">{mark:g}</text>')
    for i, (row, interval) in enumerate(shown):
        y = 20 + i * step
        colour = {"less": "#1a7f37", "more": "#b3261e"}.get(row.verdict, "#666")
        parts.append(f'<text x="{left - 10}" y="{y + 5}" text-anchor="end">{row.name}</text>')
        ends = f'x1="{x(interval.low)}" x2="{x(interval.high)}" y1="{y}" y2="{y}"'
        parts.append(f'<line {ends} stroke="{colour}" stroke-width="5" stroke-opacity="0.4"/>')
        parts.append(f'<circle cx="{x(row.ratio)}" cy="{y}" r="5" fill="{colour}"/>')
    parts.append("</svg>")
    cells = []
    for row in rows:
        between = "<td></td><td></td>"
        if row.interval is not None:
            between = f"<td>{row.ratio:.2f}</td><td>{row.interval.low:.2f}–{row.interval.high:.2f}</td>"
        figures = f"<td>{number(row.stock, row.unit)}</td><td>{number(row.variant, row.unit)}</td>"
        cells.append(f"<tr><td>{row.name}</td>{figures}{between}<td>{row.verdict}</td></tr>")
    style = (
        "body{font-family:sans-serif;margin:2em}td,th{padding:2px 12px;text-align:right}td:first-child{text-align:left}"
    )
    below = "".join(f"<br>{html.escape(note)}" for note in notes)
    return (
        f'<!doctype html><meta charset="utf-8"><title>outheap-compare</title><style>{style}</style>'
        f"<h1>{html.escape(title)}</h1><p>Ratios of the second way to the first; below 1 it needs less. "
        f"Bars: intervals.{below}</p>{''.join(parts)}"
        f"<table><tr><th></th>{''.join(f'<th>{html.escape(names[way])}</th>' for way in WAYS)}"
        f"<th>ratio</th><th>interval</th><th></th></tr>{''.join(cells)}</table>{memory}\n"
    )


# --- what the programs did -------------------------------------------------------------------------------------------


def first_difference(folder: Path, names: dict[str, str]) -> str:
    """Of the two outputs that were kept, the first line."""
    with (folder / "output-stock").open("rb") as a, (folder / "output-variant").open("rb") as b:
        line = 0
        while True:
            line += 1
            pair = a.readline(), b.readline()
            if pair[0] != pair[1]:
                texts = [repr(text.decode(errors="replace").rstrip("\n")[:60]) if text else "no line" for text in pair]
                return f"line {line}: {names['stock']} {texts[0]}, {names['variant']} {texts[1]}"
            if not pair[0]:
                return "none in the first round"


def differences(
    rounds: list[Round], words: dict[str, list[str]], folder: Path, names: dict[str, str]
) -> tuple[list[str], bool]:
    """What is to be said about exit codes and outputs, and whether the second way is at fault. `names`: of the ways."""
    said: list[str] = []
    first, second = (names[way] for way in WAYS)
    codes = {way: sorted({r.samples[way].code for r in rounds}) for way in WAYS}
    outputs = {way: {r.samples[way].output for r in rounds} for way in WAYS}

    def named(way: str) -> str:
        return f"{names[way]} ended with exit code {' or '.join(map(str, codes[way]))}"

    def complaint(way: str) -> list[str]:
        """The end of its standard error output, without the runtime's counters."""
        text = (folder / f"errors-{way}").read_text(errors="replace").splitlines()
        return [line for line in text if not re.match(r"^[a-z_]+: +[0-9.]+$", line)][-10:]

    if codes["stock"] != codes["variant"]:
        said.append(f"{named('stock')}, {named('variant')}: {' '.join(words['variant'])}")
        worse = "variant" if codes["variant"] != [0] else "stock"
        said += complaint(worse)
        return said, len(codes["stock"]) == 1
    if codes["stock"] != [0]:
        said.append(f"both ways, the program ended with exit code {' or '.join(map(str, codes['stock']))}")
        said += complaint("variant")
    if outputs["stock"] == outputs["variant"] and len(outputs["stock"]) == 1:
        return said, False
    if len(outputs["stock"]) == 1:
        between = "" if len(outputs["variant"]) == 1 else f" (that of the {second} is not the same each time)"
        said.append(
            f"the two ways do not give the same output{between}; first difference, {first_difference(folder, names)}"
        )
        return said, True
    if len(outputs["variant"]) == 1:
        said.append(
            f"the {first} program's output differs from run to run, that of the {second} does not: not compared"
        )
    else:
        said.append("the program's output differs from run to run both ways: not compared")
    said.append(f"first difference, {first_difference(folder, names)}")
    return said, False
