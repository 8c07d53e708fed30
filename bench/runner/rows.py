# SPDX-License-Identifier: MIT
"""Rows of the published tables: one figure of ours beside those of all that could take its place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import machine
from .model import Suite
from .results import Ratio, Results, Run, beyond_doubt

LOST = "values lost"  # a metric of workloads that count what a rival failed to keep alive
CONTESTANTS = ("base", "rival")  # kinds; floors, baselines and variants cannot win


@dataclass(frozen=True)
class Beside:
    """Another implementation in a row; `ratio`: of ours to it."""

    name: str
    value: float
    ratio: Ratio
    sure: bool = False  # beyond doubt, among all ratios that are shown together


@dataclass(frozen=True)
class Row:
    workload: str
    case: str
    metric: str
    unit: str
    ours: float
    others: tuple[Beside, ...]  # the base first, if it was measured
    effects: tuple[float | None, ...]  # of each of the suite's effects, the ratio to the base
    lost_values: bool

    @property
    def name(self) -> str:
        case, mark = f" ({self.case})" if self.case else "", " †" if self.lost_values else ""
        return f"{self.workload}{case}: {self.metric}{mark}"

    @property
    def best(self) -> Beside:
        """Of the others."""
        return max(self.others, key=lambda other: other.ratio.value)

    @property
    def verdict(self) -> str:
        """lost: to any of the others, beyond doubt; won: against them all; else open"""
        if any(o.sure and o.ratio.value > 1 for o in self.others):
            return "lost"
        return "won" if all(o.sure for o in self.others) else "open"


def judged(some: list[Row]) -> list[Row]:
    """What is furthest behind any other first; with what is beyond doubt among all ratios."""
    found = iter(beyond_doubt([o.ratio for row in some for o in row.others]))
    sure = [replace(row, others=tuple(replace(o, sure=next(found)) for o in row.others)) for row in some]
    return sorted(sure, key=lambda row: -row.best.ratio.value)


def rows(results: Results, suite: Suite) -> list[Row]:
    """Each figure that ours and another implementation have, if smaller is better."""
    out = []
    for workload in suite.workloads.values():
        mine, base = suite.ours_of(workload.name), suite.base_of(workload.name)
        names = [base, *(i for i in suite.implementations if i != base)]
        others = [i for i in names if suite.kind_of(workload.name, i) in CONTESTANTS]
        for case in results.cases(workload.name):
            for metric in filter(workload.compared, results.metrics(workload.name, case)):
                key = workload.name, case, metric
                beside = tuple(
                    Beside(i, results.median(*key, i) or 0.0, ratio)
                    for i in others
                    if (ratio := results.ratio(*key, mine, i)) is not None
                )
                if beside:
                    effects = [results.ratio(*key, i, base) for i in suite.effects.values()]
                    out.append(
                        Row(
                            *key,
                            results.units[key],
                            results.median(*key, mine) or 0.0,
                            beside,
                            tuple(r.value if r else None for r in effects),
                            bool(results.median(workload.name, case, LOST, base)),
                        )
                    )
    return judged(out)


def chosen_rows(runs: list[Run], suite: Suite) -> list[tuple[Row, Run]]:
    """The rows of several runs, each from one for the record, if there is one; of those from that with most rounds of
    it, and of these the newest."""

    def rank(row: Row, run: Run) -> tuple:
        return machine.is_for_the_record(run.facts), row.others[0].ratio.rounds, run.facts["date"]

    chosen: dict[str, tuple[Row, Run]] = {}
    for run in runs:
        for row in rows(run.results, suite):
            if row.name not in chosen or rank(row, run) > rank(*chosen[row.name]):
                chosen[row.name] = row, run
    return [(row, chosen[row.name][1]) for row in judged([row for row, _ in chosen.values()])]


def numbers(some: list[Row]) -> str:
    """Of rounds."""
    counts = [o.ratio.rounds for row in some for o in row.others]
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


@dataclass(frozen=True)
class Group:
    """How many rows of a subject who wins. No mean: nanoseconds, bytes and mappings have none in common."""

    title: str
    rows: int
    won: int  # against all others
    lost: int  # to any other
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
            verdicts = [row.verdict for row in having]
            out.append(Group(title, len(having), verdicts.count("won"), verdicts.count("lost"), numbers(having)))
    return out
