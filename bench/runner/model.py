# SPDX-License-Identifier: MIT
"""What a suite is made of: its tables (implementations, workloads, their cases) and how its programs are built."""

from __future__ import annotations

import subprocess
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .compiler import BUILDS, USERS, BuildError
from .options import chosen
from .progress import Steps

# How names of metrics begin that are points of a curve: "distribution of pauses: 99.9 %".
DISTRIBUTION = "distribution of "
# How names of series begin whose points are stretches of time: where one begins, and its length, in ms.
LANE = "lane: "


@dataclass(frozen=True)
class Case:
    """One set of arguments of a workload's program. Cases with the same label share a table."""

    label: str
    args: tuple[str, ...]
    implementations: tuple[str, ...]
    modes: tuple[str, ...] = ("quick", "full")
    builds: tuple[str, ...] = (USERS,)  # see compiler.py; each makes a table of its own
    timeout: float = 120.0
    once: bool = False  # run in the first round only
    ocaml5_only: bool = False
    gigabytes: float = 0.0  # memory it needs; left out where there is less


@dataclass(frozen=True)
class Workload:
    """A program made of workloads/PROGRAM.ml, PROGRAM_stubs.c if there is one, and the named adaptor modules."""

    name: str
    note: str
    cases: tuple[Case, ...]
    modules: tuple[str, ...] = ()
    program: str = ""
    measure: Callable | None = None  # instead of running the program and reading what it prints
    hidden: tuple[str, ...] = ()  # metrics for the raw data only (besides those named "gc: …")
    context: tuple[str, ...] = ()  # parts of the names of metrics that are shown, but of which less is not better
    needs: str = ""  # a command that the program runs
    base: str = ""  # what is compared with, where it is not the suite's
    ours: str = ""  # what is compared, where it is not the suite's
    also: tuple[str, ...] = ()  # measured in quick mode, too

    def shown(self, metric: str) -> bool:
        return not metric.startswith(("gc: ", DISTRIBUTION)) and metric not in self.hidden

    def compared(self, metric: str) -> bool:
        """Is it shown, and is less of it better?"""
        return self.shown(metric) and not any(c in metric for c in self.context)

    @property
    def source(self) -> str:
        return self.program or self.name


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

    @property
    def key(self) -> tuple[str, str, str]:
        return self.workload.name, self.label, self.implementation


@dataclass(frozen=True)
class Absence:
    """A cell of the tables that stays empty. Empty fields stand for all: every case, every implementation."""

    workload: str
    case: str
    implementation: str
    why: str


@dataclass
class Plan:
    """What one run will do: jobs with their programs, what is left out and why, facts about the software."""

    jobs: list[Job] = field(default_factory=list)
    programs: dict[tuple, Any] = field(default_factory=dict)
    absent: list[Absence] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)  # what {NAME} stands for in a case's arguments

    def without(self, jobs: list[Job], unfit: Callable[[Job], bool], why: str) -> list[Job]:
        self.absent += [Absence(*j.key, why) for j in jobs if unfit(j)]
        return [j for j in jobs if not unfit(j)]

    def without_versions(self, suite: Suite, jobs: list[Job], version: str) -> list[Job]:
        """Without those that are not for this version of OCaml."""
        for job in jobs:
            if why := suite.why_version(job.implementation, version, job.case):
                self.absent.append(Absence(*job.key, why))
        return [j for j in jobs if not suite.why_version(j.implementation, version, j.case)]

    def build(self, jobs: list[Job], one: Callable[[Job], Any], workers: int = 1) -> None:
        """Builds each program once; where one cannot be had, its jobs are left out."""
        wanted = {j.program: j for j in jobs}
        steps = Steps("building", len(wanted))
        with ThreadPoolExecutor(workers) as pool:
            for key, future in [(k, pool.submit(one, j)) for k, j in wanted.items()]:
                steps.start(f"{key[0]} with {key[1]}")
                try:
                    self.programs[key] = future.result()
                except (BuildError, OSError, subprocess.CalledProcessError) as error:
                    lines = str(error).strip().splitlines()
                    why = " / ".join(line[:200] for line in (lines if len(lines) < 5 else [*lines[1:3], *lines[-2:]]))
                    self.absent += [Absence(*j.key, f"was not built: {why}") for j in jobs if j.program == key]
        self.jobs = [j for j in jobs if j.program in self.programs]


@dataclass(frozen=True)
class Suite:
    """A product's tables. `ours` is compared with `base`, and with all others that could take its place."""

    name: str
    title: str
    ours: str
    base: str
    base_title: str
    sources: tuple[str, ...]  # folders whose change makes published figures old
    implementations: dict
    workloads: dict[str, Workload]
    groups: dict[str, tuple[str, ...]]  # title of a group -> its workloads
    caveats: str
    prepare: Callable  # (options, compiler, prefix, say) -> Plan
    floors: dict[str, str] = field(default_factory=dict)  # workload -> what does the same without what is measured
    effects: dict[str, str] = field(default_factory=dict)  # what is added, one by one -> ours with it
    headlines: tuple = ()  # (workload, metric) that stand for a workload in pictures
    must_succeed: tuple[str, ...] = ()  # implementations whose failure makes the run fail
    baselines: tuple[str, ...] = ()  # that do less than what is compared, and cannot win
    variants: tuple[str, ...] = ()  # of ours or of the base, which cannot win either
    curve: tuple[str, str] | None = None  # workload and case whose curve its page shows
    why_not: dict = field(default_factory=dict)  # (implementation, workload) -> why it is never measured there

    def ours_of(self, workload: str) -> str:
        return (self.workloads[workload].ours if workload in self.workloads else "") or self.ours

    def base_of(self, workload: str) -> str:
        return (self.workloads[workload].base if workload in self.workloads else "") or self.base

    def kind_of(self, workload: str, name: str) -> str:
        """ours, base, floor, variant, baseline, rival"""
        kinds = {self.ours_of(workload): "ours", self.base_of(workload): "base", self.floors.get(workload): "floor"}
        own = "variant" if name in self.variants else "baseline" if name in self.baselines else "rival"
        return kinds.get(name, own)

    def why_version(self, implementation: str, version: str, case: Case | None = None) -> str:
        """Why it is not measured with this version of OCaml, or nothing."""
        entry = self.implementations[implementation]
        only5 = getattr(entry, "ocaml5_only", False) or (case is not None and case.ocaml5_only)
        if only5 and version.startswith("4."):
            return "OCaml 5 only"
        versions = getattr(entry, "versions", "")
        return "" if version.startswith(versions) else f"OCaml {versions}x only"

    def jobs(self, options: Namespace) -> list[Job]:
        """What the options ask for. In quick mode the two that are compared, and the effects, unless named."""
        parts = {w: {w, w.split(",")[0]} for w in self.workloads}  # `ocamlopt` has `ocamlopt, words` with it
        names = chosen(options.only, {part for of in parts.values() for part in of})
        wanted = {w for w, of in parts.items() if of & names}
        named = chosen(options.impl, self.implementations)
        jobs: dict[tuple, Job] = {}
        for w in (w for w in self.workloads.values() if w.name in wanted):
            main = {self.ours_of(w.name), self.base_of(w.name), *self.effects.values(), *self.must_succeed, *w.also}
            allowed = named if options.impl or options.mode == "full" else main
            for c in (c for c in w.cases if options.mode in c.modes and (options.case or "") in c.label):
                for b in chosen(options.build, BUILDS) if options.build else c.builds:
                    for job in (Job(w, c, i, b) for i in c.implementations if i in allowed):
                        jobs.setdefault(job.key, job)  # with --build, cases can fall together
        return list(jobs.values())
