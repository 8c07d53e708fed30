# SPDX-License-Identifier: MIT
"""Runs programs, one process at a time, in rounds over all cases, and keeps every figure they print."""

from __future__ import annotations

import csv
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from compare.intervals import ENOUGH

from .model import Absence, Job
from .progress import Steps
from .results import SERIES_FIELDS, Figure

# What a round of a job is worth, in seconds for which it is run: a first round most, since it fills a cell; then the
# others of the main columns that an interval needs.
FIRST, SURE, MAIN = 24.0, 8.0, 3.0
SURE_ROUNDS = ENOUGH


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


def schedule(
    jobs: list[Job],
    rounds: int,
    seconds: float,
    main: tuple[str, ...] = (),
    cost: dict[Job, float] | None = None,
    have: dict[Job, int] | None = None,
) -> dict[Job, int]:
    """How many rounds each job has when so many seconds more are spent. First comes a round of the `main`
    implementations (or the workload's own) in every case, so that no case is without a comparison; then no job takes
    much more time than the others, where the first round and the `main` implementations are worth more. 0: it does not
    fit at all."""
    cost = cost or {j: j.case.seconds for j in jobs}
    number = dict(have or dict.fromkeys(jobs, 0))

    def price(job: Job, n: int) -> tuple[bool, float]:
        is_main = job.implementation in (job.workload.main or main)
        if is_main and n == 0:
            return (False, cost[job])
        worth = FIRST if n == 0 else SURE if is_main and n < SURE_ROUNDS else 1 / (n + 1)
        return (True, cost[job] / worth / (MAIN if is_main else 1))

    units = sorted(
        (price(job, n), n, at)
        for at, job in enumerate(jobs)
        for n in range(number[job], 1 if job.case.once else rounds)
    )
    for _, n, at in units:
        job = jobs[at]
        if number[job] == n and cost[job] <= seconds:
            number[job] += 1
            seconds -= cost[job]
    return number


@dataclass
class Outcome:
    absent: list[Absence]
    failed: list[tuple[Job, str]]


def measure_all(
    jobs: list[Job],
    rounds: int,
    run: Callable[[Job, int], list[Figure]],
    keep: Callable[[list[Figure]], None],
    seconds: float = float("inf"),
    main: tuple[str, ...] = (),
    quiet: bool = False,
) -> Outcome:
    """Rounds over all jobs. Within a round the implementations of a case follow each other, in turn forwards and
    backwards. What fits into the seconds is planned again before each round, with what the jobs really took."""
    outcome, failed = Outcome([], []), set()
    cost = {j: j.case.seconds for j in jobs}
    have = dict.fromkeys(jobs, 0)
    groups, end = by_case(jobs), time.monotonic() + seconds
    with Steps("measuring", len(jobs), quiet=quiet) as steps:
        for n in range(rounds):
            planned = schedule(
                [j for j in jobs if j not in failed],
                rounds,
                end - time.monotonic(),
                main,
                cost,
                {j: h for j, h in have.items() if j not in failed},
            )
            pending = [
                j
                for group in groups
                for j in (group if n % 2 == 0 else reversed(group))
                if j not in failed and planned[j] > have[j]
            ]
            runs = {j: planned[j] - have[j] for j in planned if planned[j] > have[j]}
            steps.plan(sum(runs.values()), sum(cost[j] * times for j, times in runs.items()))
            for job in pending:
                if n and time.monotonic() + cost[job] > end:
                    continue
                steps.start(f"round {n + 1}, {' '.join(part for part in job.key if part)}")
                begin = time.monotonic()
                try:
                    keep(run(job, n))
                except RuntimeError as error:
                    failed.add(job)
                    outcome.failed.append((job, str(error)))
                    outcome.absent.append(Absence(*job.key, f"failed: {error}"))
                have[job] += 1
                steps.advance(cost[job])
                cost[job] = max(time.monotonic() - begin, 0.001)
    outcome.absent += [
        Absence(*j.key, f"takes {j.case.seconds:.0f} s: did not fit into the time of this run")
        for j in jobs
        if not have[j]
    ]
    return outcome
