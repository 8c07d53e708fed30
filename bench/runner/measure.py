# SPDX-License-Identifier: MIT
"""Runs programs, one process at a time, in rounds over all cases, and keeps every figure they print."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .model import Absence, Job
from .progress import Steps
from .results import SERIES_FIELDS, Figure


def one_line(text: str) -> str:
    """The end of what a program said."""
    return " ".join(text.split())[-300:]


@dataclass(frozen=True)
class Sink:
    """Where points over time or a distribution go: series.csv."""

    path: Path
    job: Job

    def add(self, name: str, points: list[tuple[float, float]]) -> None:
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(SERIES_FIELDS)
            writer.writerows([*self.job.key, name, f"{x:.6g}", f"{y:.6g}"] for x, y in points)


def run_job(job: Job, program, args: list[str], round_number: int, series: Path | None = None) -> list[Figure]:
    """Raises RuntimeError with the reason when the program does not end well."""
    environment = {k: v for k, v in os.environ.items() if k not in ("OCAMLRUNPARAM", "CAMLRUNPARAM")}
    try:
        if job.workload.measure:
            rows = job.workload.measure(
                program, args, job.case.timeout, Sink(series, job) if series and not round_number else None
            )
        else:
            done = subprocess.run(
                [str(program), *args], capture_output=True, text=True, timeout=job.case.timeout, env=environment
            )
            if done.returncode != 0:
                raise RuntimeError(f"exit code {done.returncode}: {one_line(done.stderr)}")
            rows = [
                (name, float(value), unit)
                for name, value, unit in (line.split("\t") for line in done.stdout.splitlines())
            ]
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no result within {job.case.timeout:g} s") from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"exit code {error.returncode}: {one_line(error.stderr.decode(errors='replace'))}") from None
    return [Figure(round_number, *job.key[:2], job.implementation, *row) for row in rows]


def by_case(jobs: Iterable[Job]) -> list[list[Job]]:
    groups: dict[tuple, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.key[:2], []).append(job)
    return list(groups.values())


@dataclass
class Outcome:
    absent: list[Absence]
    failed: list[tuple[Job, str]]


def measure_all(
    jobs: list[Job],
    rounds: int,
    run: Callable[[Job, int], list[Figure]],
    keep: Callable[[list[Figure]], None],
) -> Outcome:
    """Rounds over all jobs. Within a round the implementations of a case follow each other, in turn forwards and
    backwards."""
    outcome, failed = Outcome([], []), set()
    steps = Steps("measuring", sum(1 if j.case.once else rounds for j in jobs))
    for n in range(rounds):
        for group in by_case(j for j in jobs if not (n and j.case.once)):
            for job in group if n % 2 == 0 else reversed(group):
                steps.start(f"round {n + 1}, {' '.join(part for part in job.key if part)}")
                if job in failed:
                    continue
                try:
                    keep(run(job, n))
                except RuntimeError as error:
                    failed.add(job)
                    outcome.failed.append((job, str(error)))
                    outcome.absent.append(Absence(*job.key, f"failed: {error}"))
    return outcome
