# SPDX-License-Identifier: MIT
"""What a suite is made of: its tables (implementations, workloads, their cases, targets) and how its programs are
built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .compiler import BUILDS, USERS

DISTRIBUTION = (
    "distribution of "  # how names of metrics begin that are points of a curve: "distribution of pauses: 99.9 %"
)

LANE = "lane: "  # how names of series begin whose points are stretches of time: where one begins, and its length, in ms


@dataclass(frozen=True)
class Case:
    """One set of arguments of a workload's program. Cases with the same label share a table."""

    label: str
    args: tuple[str, ...]
    implementations: tuple[str, ...]
    modes: tuple[str, ...] = ("quick", "full")
    builds: tuple[str, ...] = (USERS,)  # see compiler.py; each makes a table of its own
    seconds: float = 1.0  # of one run, roughly; for the progress bar and --budget
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
    beside: tuple[str, ...] = ()  # others that a row of the published tables names, besides the suite's
    main: tuple[str, ...] = ()  # the implementations that are measured first, where they are not the suite's two

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


@dataclass(frozen=True)
class Suite:
    """A product's tables. `ours` is compared with `base`."""

    name: str
    title: str
    ours: str
    base: str
    base_title: str
    implementations: dict
    workloads: dict
    groups: dict[str, tuple[str, ...]]  # title of a group -> its workloads
    floors: dict[str, str]  # workload -> implementation that does the same without what is measured
    headlines: tuple  # (workload, metric) that stand for a workload in pictures
    caveats: str
    prepare: Callable  # (options, compiler, prefix) -> Plan
    check: Callable  # (results, version) -> list of Verdict
    unmeasured: Callable  # (results, version) -> names of targets
    rounds: dict[str, int]  # by mode
    minutes: dict[str, float]  # by mode: the default budget
    must_succeed: tuple[str, ...] = ()  # implementations whose failure makes the run fail
    beside: tuple[str, ...] = ()  # others that a row of the published tables names
    baselines: tuple[str, ...] = ()  # that do less than what is compared, and cannot win
    variants: tuple[str, ...] = ()  # of ours or of the base, which cannot win either
    curve: tuple[str, str] | None = None  # workload and case whose curve its page shows
    why_not: dict = field(default_factory=dict)  # (implementation, workload or "") -> why it is never measured there

    @property
    def base_words(self) -> str:
        own = any(w.base for w in self.workloads.values())
        return f"{self.base_title}, or what the row names," if own else self.base_title

    def ours_of(self, workload: str) -> str:
        return (self.workloads[workload].ours if workload in self.workloads else "") or self.ours

    def base_of(self, workload: str) -> str:
        return (self.workloads[workload].base if workload in self.workloads else "") or self.base
