# SPDX-License-Identifier: MIT
"""The suite of Boxroot: what will run, and its programs. Its tables: bench/suites/boxroot.toml."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from ... import fetch, tables
from ...compiler import BUILT, Compiler
from ...machine import first_line
from ...model import Plan
from . import build, callgrind

OURS, RIVAL = "boxroot", "boxroot-0.4.0"


@dataclass(frozen=True)
class Implementation:
    """One way to hold OCaml values. `library` names where its boxroot.h and C sources come from (see build.py), and
    `adaptors` the folder of rivals/ that presents it to OCaml."""

    name: str
    note: str
    library: str | None = None
    adaptors: str = "foreign"
    flags: tuple[str, ...] = ()
    ocaml5_only: bool = False
    one_thread: bool = False  # for one thread on one domain
    rootless: bool = False  # a floor: keeps nothing alive


def prepare(options, compiler: Compiler, prefix, say) -> Plan:
    plan = Plan()
    jobs = plan.without_versions(SUITE, SUITE.jobs(options), compiler.version)
    for b in dict.fromkeys(j.build for j in jobs):
        if compiler.can(b):
            command = compiler.c_command(b)
            plan.facts[f"C code, build {b}"] = first_line([command[0], "--version"]) + ": " + " ".join(command)
        else:
            jobs = plan.without(jobs, lambda j, b=b: j.build == b, f"{compiler.c_command(b)[0]} is missing")
    jobs = fetch.with_commands(plan, jobs)
    if not shutil.which("valgrind"):
        jobs = plan.without(jobs, lambda j: j.workload.measure is not None, "valgrind is missing")
    plan.build(
        jobs,
        lambda j: build.program(j.workload, SUITE.implementations[j.implementation], compiler, j.build),
        os.cpu_count() or 1,
    )
    plan.arguments["cores"] = str(os.cpu_count())
    if any("{text}" in a for j in plan.jobs for a in j.case.args):
        plan.arguments["text"] = str(fetch.text(BUILT / "text", compiler.where, say))
    return plan


MEASURES = {f.__name__: f for f in (callgrind.instructions, callgrind.root_share)}
SUITE = tables.read("boxroot", Implementation, MEASURES, prepare=prepare)
