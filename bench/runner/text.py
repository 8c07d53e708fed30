# SPDX-License-Identifier: MIT
"""Figures as text: numbers, and tables for the terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from compare.intervals import ENOUGH

from .model import Suite, Workload
from .results import Ratio, Results

INTERVALS = (
    "A row has the medians over the rounds of one run, and the median of the rounds' ratios. Its 95 % interval lies "
    f"between two of these ratios, chosen by their order. Fewer than {ENOUGH} rounds give no such interval: these rows "
    "are undecided. Instruction counts repeat exactly. A ratio is beyond doubt where its interval excludes 1 and its "
    "sign test holds among all ratios of the page: on average, at most one in twenty of them is wrong (Benjamini and "
    "Hochberg). Another machine can still differ."
)
UNDECIDED = "undecided"
MOST_CASES = 6  # of one workload with a table each; more are rows of one table for each metric


SCALES = {"ns": ("us", 1000.0), "us": ("ms", 1000.0), "ms": ("s", 1000.0), "B": ("KB", 1000.0), "MB": ("GB", 1000.0)}
SPELLED = {"us": "µs"}


def number(x: float) -> str:
    if x == 0 or abs(x) >= 1e5:
        return f"{x:.0f}" if abs(x) < 1e6 else f"{x / 1e6:.1f}M"
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"


def amounts(values: Sequence[float | None], unit: str) -> list[str]:
    """Figures of one row, in one unit: the largest in which each is 1 at least."""
    least = min((v for v in values if v), default=0.0)
    while least >= 1000 and unit in SCALES:
        unit, by = SCALES[unit]
        least, values = least / by, [v and v / by for v in values]
    return ["" if v is None else f"{number(v)} {SPELLED.get(unit, unit)}".strip() for v in values]


def times(x: float) -> str:
    """A ratio. No more digits than mean something; nothing where the base is nothing."""
    if x == math.inf:
        return ""
    return f"{x:.0f}" if x >= 100 or x == 0 else f"{x:.1f}" if x >= 10 else f"{x:.2f}" if x >= 0.1 else f"{x:.1g}"


def interval(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return UNDECIDED
    low, high = times(ratio.low), times(ratio.high)
    return "exact" if ratio.low == ratio.high else f"{low}–{high}" if high else f"{low} or more"


def cell(results: Results, suite: Suite, workload: str, case: str, metric: str, implementation: str) -> str:
    middle = results.median(workload, case, metric, implementation)
    if middle is None:
        return ""
    base = suite.base_of(workload)
    ratio = results.ratio(workload, case, metric, implementation, base) if implementation != base else None
    return number(middle) + (f" {times(ratio.value)}x" if ratio and ratio.value < math.inf else "")


def tables(results: Results, suite: Suite) -> Iterator[tuple[Workload, str, list[str], list[list[str]]]]:
    """(workload, case or metric, header row, rows) for everything measured."""
    order = list(suite.implementations)
    for name, workload in suite.workloads.items():
        cases = results.cases(name)
        metrics = {case: [m for m in results.metrics(name, case) if workload.shown(m)] for case in cases}

        def titled(case: str, metric: str, name: str = name) -> str:
            return metric + (f" ({unit})" if (unit := results.units[name, case, metric]) else "")

        def row(case: str, metric: str, implementations: list[str], name: str = name) -> list[str]:
            return [cell(results, suite, name, case, metric, i) for i in implementations]

        if len(cases) <= MOST_CASES:
            for case in cases:
                used = sorted(results.implementations(name, case), key=order.index)
                yield workload, case, ["", *used], [[titled(case, m), *row(case, m, used)] for m in metrics[case]]
            continue
        used = sorted({i for c in cases for i in results.implementations(name, c)}, key=order.index)
        for metric in dict.fromkeys(m for c in cases for m in metrics[c]):
            having = [c for c in cases if metric in metrics[c]]
            yield workload, titled(having[0], metric), ["", *used], [[c, *row(c, metric, used)] for c in having]


def terminal(results: Results, suite: Suite, width: int) -> str:
    out = []
    for workload, case, header, rows in tables(results, suite):
        out.append(f"\n{workload.name}{', ' + case if case else ''}: {workload.note}")
        widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
        columns = list(range(1, len(header)))
        while columns:  # as many columns as fit, and the rest below
            block = [columns.pop(0)]
            while columns and widths[0] + sum(widths[c] + 2 for c in [*block, columns[0]]) <= width:
                block.append(columns.pop(0))
            out += [
                "  ".join([r[0].ljust(widths[0]), *(r[c].rjust(widths[c]) for c in block)]).rstrip()
                for r in [header, *rows]
            ]
    return "\n".join(out)


def markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    first, *others = ["| " + " | ".join(cells) + " |" for cells in [header, *rows]]
    return [first, "|" + "---|" * len(header), *others]
