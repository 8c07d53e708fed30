# SPDX-License-Identifier: MIT
"""Targets: a bound on a ratio, on a figure of ours, or on a distance to the floor."""

from __future__ import annotations

from dataclasses import dataclass

from .results import Results

AT_THE_FLOOR = 1.02  # so near to the floor that what is left cannot be told from noise


@dataclass(frozen=True)
class Verdict:
    name: str
    figure: float
    bound: float
    unit: str = "x"
    low: float | None = None
    high: float | None = None
    at_floor: bool = False

    @property
    def reached(self) -> bool:
        return self.figure <= self.bound or self.at_floor

    def line(self, width: int) -> str:
        unit = self.unit if self.unit == "x" else " " + self.unit
        interval = f"  {self.low:.2f}–{self.high:.2f}" if self.low is not None and self.high is not None else ""
        how = (
            "reached"
            if self.figure <= self.bound
            else "reached: within 2 % of the floor"
            if self.at_floor
            else f"SHORT by {self.figure / self.bound - 1:.1%}"
        )
        return f"{self.name:<{width}}  {self.figure:6.3f}{unit}  (at most {self.bound:.3f}{unit})  {how}{interval}"


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
    at_floor = a <= c * AT_THE_FLOOR
    if a <= c:
        return Distance(0.0, at_floor)
    return Distance((a - c) / (b - c) if b > c else float("inf"), at_floor)


def lines(verdicts: list[Verdict], missing: list[str]) -> list[str]:
    width = max((len(v.name) for v in verdicts), default=0)
    out = [v.line(width) for v in verdicts]
    if verdicts:
        out.append(f"{sum(v.reached for v in verdicts)} of {len(verdicts)} targets reached")
    return out + (["not measured in this run: " + "; ".join(missing)] if missing else [])
