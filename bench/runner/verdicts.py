# SPDX-License-Identifier: MIT
"""Targets (bench/targets.csv): a bound on a ratio, on a figure of ours, or on what is left above the floor."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import geometric_mean

from .compiler import BENCH
from .model import Suite
from .results import Results

AT_THE_FLOOR = 1.02  # so near to the floor that what is left cannot be told from noise
MEAN = "mean of "


@dataclass(frozen=True)
class Verdict:
    workload: str
    case: str
    metric: str
    beside: str
    figure: float
    bound: float
    low: float | None = None
    high: float | None = None
    at_floor: bool = False

    @property
    def name(self) -> str:
        return f"{self.workload}{f' ({self.case})' if self.case else ''}: {self.metric}, {self.beside}"

    @property
    def reached(self) -> bool:
        return self.figure <= self.bound or self.at_floor

    def line(self, width: int) -> str:
        interval = f"  {self.low:.2f}–{self.high:.2f}" if self.low is not None and self.high is not None else ""
        how = "reached" if self.reached else f"SHORT by {self.figure / self.bound - 1:.1%}"
        return f"{self.name:<{width}}  {self.figure:6.3f}  (at most {self.bound:.3f})  {how}{interval}"


@dataclass(frozen=True)
class Distance:
    """What is left above the floor: our time less the floor's, over the base's less the floor's."""

    value: float
    at_floor: bool


def distance(
    results: Results, workload: str, case: str, metric: str, ours: str, base: str, floor: str
) -> Distance | None:
    a, b, c = (results.median(workload, case, metric, i) for i in (ours, base, floor))
    if a is None or b is None or c is None or c <= 0:
        return None
    if a <= c or b > c:
        return Distance(max(0.0, a - c) / (b - c) if a > c else 0.0, a <= c * AT_THE_FLOOR)
    return Distance(a / c, False)  # the base leaves nothing


def targets(suite: Suite, version: str) -> list[tuple[dict, float]]:
    """The suite's rows that have a bound with this version of OCaml."""
    with (BENCH / "targets.csv").open(newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    column = "OCaml 4.14" if version.startswith("4.") else "OCaml 5"
    return [(row, float(row[column])) for row in rows if row["suite"] == suite.name and row[column]]


def of_target(row: dict, bound: float, suite: Suite, results: Results) -> Iterator[Verdict]:
    workload, base = row["workload"], row["base"] or suite.base_of(row["workload"])
    ours = row["ours"] or suite.ours_of(workload)
    pattern = row["metric"].removeprefix(MEAN)
    for case in (c for c in results.cases(workload) if fnmatchcase(c, row["case"])):
        metrics = [m for m in results.metrics(workload, case) if fnmatchcase(m, pattern)]
        if pattern != row["metric"]:
            ratios = [r.value for m in metrics if (r := results.ratio(workload, case, m, ours, base))]
            if ratios:
                yield Verdict(workload, case, row["metric"], f"beside {base}", geometric_mean(ratios), bound)
            continue
        for metric in metrics:
            key = workload, case, metric
            figure = results.median(*key, ours)
            if base == "none":
                if figure is not None:
                    yield Verdict(*key, results.units[key] or ours, figure, bound)
            elif base == "floor":
                if left := distance(results, *key, ours, suite.base, suite.floors[workload]):
                    yield Verdict(*key, "above the floor", left.value, bound, at_floor=left.at_floor)
            elif base.startswith("@"):
                other = results.median(workload, base[1:], metric, ours)
                if figure and other:
                    yield Verdict(*key, f"beside {base[1:]}", figure / other, bound)
            else:
                for i in suite.implementations:
                    ratio = results.ratio(*key, ours, i) if fnmatchcase(i, base) else None
                    if ratio:
                        yield Verdict(*key, f"beside {i}", ratio.value, bound, ratio.low, ratio.high)


def check(suite: Suite, results: Results, version: str) -> list[Verdict]:
    """Every target that this run has measured."""
    return [v for row, bound in targets(suite, version) for v in of_target(row, bound, suite, results)]


def unmeasured(suite: Suite, results: Results, version: str) -> list[str]:
    """Of workloads that this run has."""
    rows = [
        row
        for row, bound in targets(suite, version)
        if results.cases(row["workload"]) and not any(of_target(row, bound, suite, results))
    ]
    case = {id(r): "" if r["case"] == "*" else f" ({r['case']})" for r in rows}
    return list(dict.fromkeys(f"{r['workload']}{case[id(r)]}: {r['metric']}" for r in rows))


def lines(verdicts: list[Verdict], missing: list[str]) -> list[str]:
    width = max((len(v.name) for v in verdicts), default=0)
    out = [v.line(width) for v in verdicts]
    if verdicts:
        out.append(f"{sum(v.reached for v in verdicts)} of {len(verdicts)} targets reached")
    return out + (["not measured in this run: " + "; ".join(missing)] if missing else [])
