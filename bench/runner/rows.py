# SPDX-License-Identifier: MIT
"""Rows of the published tables: one figure of ours beside that of the base, with what others have and how much is
left."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import machine
from .model import Suite
from .results import Ratio, Results, Run, beyond_doubt
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
    sure: bool = False  # beyond doubt, among all rows that it is shown with

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


def judged(some: list[Row]) -> list[Row]:
    """The greatest ratio first, and which are beyond doubt."""
    ordered = sorted(some, key=lambda row: -row.ratio.value)
    return [replace(row, sure=sure) for row, sure in zip(ordered, beyond_doubt([r.ratio for r in ordered]))]


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
    return judged(out)


def chosen_rows(runs: list[Run], suite: Suite) -> list[tuple[Row, Run]]:
    """The rows of several runs, each from one for the record, if there is one; of those from that with most rounds of
    it, and of these the newest; by ratio."""

    def rank(row: Row, run: Run) -> tuple:
        return machine.is_for_the_record(run.facts), row.ratio.rounds, run.facts["date"]

    chosen: dict[str, tuple[Row, Run]] = {}
    for run in runs:
        for row in rows(run.results, suite):
            if row.name not in chosen or rank(row, run) > rank(*chosen[row.name]):
                chosen[row.name] = row, run
    return [(row, chosen[row.name][1]) for row in judged([row for row, _ in chosen.values()])]


def numbers(some: list[Row]) -> str:
    """Of rounds."""
    few, many = min(r.ratio.rounds for r in some), max(r.ratio.rounds for r in some)
    return str(few) if few == many else f"{few} to {many}"


@dataclass(frozen=True)
class Group:
    """How many rows of a subject who wins. No mean: nanoseconds, bytes and mappings have none in common."""

    title: str
    rows: int
    won: int  # beyond doubt
    lost: int  # beyond doubt
    rounds: str

    @property
    def undecided(self) -> int:
        return self.rows - self.won - self.lost


def groups(all_rows: list[Row], suite: Suite) -> list[Group]:
    """What a rival wins because it lost values is left out."""
    out = []
    for title, workloads in suite.groups.items():
        having = [r for r in all_rows if r.workload in workloads and not r.lost_values]
        if having:
            sure = [r.ratio.value for r in having if r.sure]
            won, lost = sum(v < 1 for v in sure), sum(v > 1 for v in sure)
            out.append(Group(title, len(having), won, lost, numbers(having)))
    return out
