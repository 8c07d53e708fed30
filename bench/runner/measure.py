# SPDX-License-Identifier: MIT
"""Runs programs, one process at a time, and keeps every figure they print."""
from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from .build import BUILDS, USERS
from .suite import RIVAL, Case, Workload


@dataclass(frozen=True)
class Figure:
    round: int
    workload: str
    case: str
    implementation: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class Job:
    workload: Workload
    case: Case
    implementation: str
    build: str = USERS

    @property
    def label(self) -> str:
        """Of the case, with the build when that is not the users'."""
        return ", ".join(part for part in (self.case.label, BUILDS[self.build].label) if part)

    @property
    def program(self) -> tuple[str, str, str]:
        """What must be built."""
        return self.workload.source, self.implementation, self.build


def one_line(text: str) -> str:
    """The end of what a program said."""
    return " ".join(text.split())[-300:]


def run_job(job: Job, program, args: list[str], round_number: int) -> list[Figure]:
    """Raises RuntimeError with the reason when the program does not end well."""
    environment = {k: v for k, v in os.environ.items() if k not in ("OCAMLRUNPARAM", "CAMLRUNPARAM")}
    try:
        if job.workload.measure:
            rows = job.workload.measure(program, args, job.case.timeout)
        else:
            done = subprocess.run([str(program), *args], capture_output=True, text=True, timeout=job.case.timeout, env=environment)
            if done.returncode != 0:
                raise RuntimeError(f"exit code {done.returncode}: {one_line(done.stderr)}")
            rows = [(name, float(value), unit) for name, value, unit in (line.split("\t") for line in done.stdout.splitlines())]
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no result within {job.case.timeout:g} s") from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"exit code {error.returncode}: {one_line(error.stderr.decode(errors='replace'))}") from None
    return [Figure(round_number, job.workload.name, job.label, job.implementation, *row) for row in rows]


class Results:
    """All figures of a run, by workload, case, metric and implementation."""

    def __init__(self, figures: list[Figure] = ()):
        self.figures: list[Figure] = []
        self.values: dict[tuple, dict[int, float]] = defaultdict(dict)
        self.units: dict[tuple, str] = {}
        self.failures: list[tuple[Job, str]] = []
        self.add(figures)

    def add(self, figures) -> None:
        for f in figures:
            self.figures.append(f)
            self.values[f.workload, f.case, f.metric, f.implementation][f.round] = f.value
            self.units[f.workload, f.case, f.metric] = f.unit

    def cases(self, workload: str) -> list[str]:
        return list(dict.fromkeys(f.case for f in self.figures if f.workload == workload))

    def metrics(self, workload: str, case: str) -> list[str]:
        return list(dict.fromkeys(f.metric for f in self.figures if (f.workload, f.case) == (workload, case)))

    def implementations(self, workload: str, case: str) -> list[str]:
        return list(dict.fromkeys(f.implementation for f in self.figures if (f.workload, f.case) == (workload, case)))

    def rounds(self) -> int:
        return 1 + max((f.round for f in self.figures), default=0)

    def median(self, workload: str, case: str, metric: str, implementation: str) -> float | None:
        values = self.values.get((workload, case, metric, implementation))
        return median(values.values()) if values else None

    def spread(self, workload: str, case: str, metric: str, implementation: str) -> float | None:
        """Half of the distance between the least and the greatest figure, as a share of the median."""
        values = self.values.get((workload, case, metric, implementation), {}).values()
        middle = median(values) if values else 0
        return (max(values) - min(values)) / 2 / middle if len(values) > 1 and middle else None

    def ratio(self, workload: str, case: str, metric: str, implementation: str, base: str = RIVAL) -> float | None:
        """The median over the rounds of the ratio to `base` in the same round: what drifts on the machine cancels."""
        ours = self.values.get((workload, case, metric, implementation), {})
        theirs = self.values.get((workload, case, metric, base), {})
        ratios = [ours[r] / theirs[r] for r in ours if theirs.get(r)]
        return median(ratios) if ratios else None


class Progress:
    """A line on the terminal: bar, time left, what runs."""

    def __init__(self, seconds_planned: float, stream):
        self.planned, self.done, self.stream = seconds_planned, 0.0, stream
        self.start = time.monotonic()

    def show(self, what: str) -> None:
        if not self.stream.isatty():
            return
        share = min(1.0, self.done / self.planned) if self.planned else 1.0
        elapsed = time.monotonic() - self.start
        left = elapsed / share * (1 - share) if share > 0.02 else self.planned - self.done
        bar = "#" * int(share * 30)
        self.stream.write(f"\r\033[K[{bar:<30}] {share:4.0%}  {left:4.0f} s left  {what}")
        self.stream.flush()

    def advance(self, seconds: float) -> None:
        self.done += seconds

    def clear(self) -> None:
        if self.stream.isatty():
            self.stream.write("\r\033[K")
            self.stream.flush()
