# SPDX-License-Identifier: MIT
"""Rows of the published tables: one figure of ours beside that of the base, with what others have and how much is
left."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean

from .model import Suite
from .results import Ratio, Results
from .text import interval, number, times
from .verdicts import Distance, distance

LOST = "values lost"  # a metric of workloads that count what a rival failed to keep alive
HEADER = ["", "ours", "base", "ratio", "95 %", "rounds", "distance to floor", "others"]


@dataclass(frozen=True)
class Row:
    workload: str
    case: str
    metric: str
    unit: str
    ours: float
    theirs: float
    ratio: Ratio
    distance: Distance | None
    others: tuple[tuple[str, float], ...]
    lost_values: bool
    base: str = ""  # what it is compared with, where that is not the suite's

    @property
    def name(self) -> str:
        case, mark = f" ({self.case})" if self.case else "", " †" if self.lost_values else ""
        against = f", beside {self.base}" if self.base else ""
        return f"{self.workload}{case}: {self.metric}{against}{mark}"

    def cells(self) -> list[str]:
        left = "" if not self.distance else "at the floor" if self.distance.at_floor else times(self.distance.value)
        return [
            self.name,
            number(self.ours) + (f" {self.unit}" if self.unit else ""),
            number(self.theirs),
            f"**{times(self.ratio.value)}**" if self.ratio.value > 1 else times(self.ratio.value),
            interval(self.ratio),
            str(self.ratio.rounds),
            left,
            ", ".join(f"{name} {number(value)}" for name, value in self.others),
        ]


def rows(results: Results, suite: Suite) -> list[Row]:
    """Every figure that both have and of which less is better, the greatest ratio first."""
    out = []
    for workload in suite.workloads.values():
        floor, base = suite.floors.get(workload.name, ""), suite.base_of(workload.name)
        mine = suite.ours_of(workload.name)
        for case in results.cases(workload.name):
            for metric in results.metrics(workload.name, case):
                key = workload.name, case, metric
                ratio = results.ratio(*key, mine, base) if workload.compared(metric) else None
                if ratio is None:
                    continue
                beside = dict.fromkeys((*([floor] if floor else []), *suite.beside, *workload.beside))
                others = tuple(
                    (i, value) for i in beside if i != base and (value := results.median(*key, i)) is not None
                )
                out.append(
                    Row(
                        *key,
                        results.units[key],
                        results.median(*key, mine) or 0.0,
                        results.median(*key, base) or 0.0,
                        ratio,
                        distance(results, *key, mine, base, floor),
                        others,
                        bool(results.median(workload.name, case, LOST, base)),
                        base if base != suite.base else "",
                    )
                )
    return sorted(out, key=lambda row: -row.ratio.value)


@dataclass(frozen=True)
class Group:
    title: str
    rows: int
    lost: int  # of which the base is better
    mean: float
    rounds: str
    peers: tuple[float | None, ...] = ()  # the geometric means beside these, of the rows that they have


def mean_beside(peer: str, some: list[Row]) -> float | None:
    theirs = [(r.ours, r.theirs if r.base == peer else dict(r.others).get(peer)) for r in some]
    ratios = [ours / value for ours, value in theirs if value and ours > 0]
    return geometric_mean(ratios) if ratios else None


def groups(all_rows: list[Row], suite: Suite) -> list[Group]:
    """The geometric mean of the ratios of each group of workloads. A ratio without bound or of nothing is left out."""
    out = []
    for title, workloads in suite.groups.items():
        having = [
            r for r in all_rows if r.workload in workloads and 0 < r.ratio.value < float("inf") and not r.lost_values
        ]
        if having:
            few, many = min(r.ratio.rounds for r in having), max(r.ratio.rounds for r in having)
            out.append(
                Group(
                    title,
                    len(having),
                    sum(r.ratio.value > 1 for r in having),
                    geometric_mean(r.ratio.value for r in having),
                    str(few) if few == many else f"{few} to {many}",
                    tuple(mean_beside(peer, having) for peer in suite.peers),
                )
            )
    return out
