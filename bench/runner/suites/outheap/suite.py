# SPDX-License-Identifier: MIT
"""The suite of Outheap: what will run, and its programs. Its tables: bench/suites/outheap.toml."""

from __future__ import annotations

import os

from ... import fetch, tables
from ...compiler import BUILT, C_FLAGS, Compiler
from ...machine import available_gigabytes, chosen_of, first_line
from ...model import Plan
from . import execute
from .programs import Builder
from .runtimes import Rival, Runtimes


def prepare(options, compiler: Compiler, prefix, say) -> Plan:
    plan, memory = Plan(), available_gigabytes()
    folder = BUILT / "outheap" / compiler.version
    runtimes = Runtimes(compiler, prefix, folder / "runtimes", options.runtimes.resolve() if options.runtimes else None)
    builder = Builder(compiler, runtimes, folder)
    jobs = plan.without_versions(SUITE, SUITE.jobs(options), compiler.version)
    jobs = plan.without(jobs, lambda j: j.case.gigabytes > memory, f"needs more memory; {memory:.1f} GB were free")
    jobs = fetch.with_commands(plan, jobs)
    plan.facts["C compiler"] = first_line([compiler.cc, "--version"]) + ", flags " + " ".join(C_FLAGS)
    plan.facts["huge pages, defrag"] = chosen_of("/sys/kernel/mm/transparent_hugepage/defrag") or "not visible"
    if "CS_GNU_LIBC_VERSION" in os.confstr_names:
        plan.facts["C library"] = os.confstr("CS_GNU_LIBC_VERSION") or ""
    if jobs:
        say("building the runtimes")
        runtimes.prepare([SUITE.implementations[i] for i in dict.fromkeys(j.implementation for j in jobs)])
    plan.build(jobs, lambda j: builder.program(j.workload.source, SUITE.implementations[j.implementation]))
    for coq in filter(None, builder.built_coq.values()):
        plan.facts["Coq"] = ", ".join((coq / "versions").read_text().splitlines())
    return plan


MEASURES = {
    f.__name__: f
    for f in (
        execute.printed,
        execute.printed_by_workers,
        execute.over_time,
        execute.lanes,
        execute.system_calls,
        execute.process,
        execute.compile_parser,
        execute.compile_theory,
        execute.toplevels,
        execute.counted,
    )
}
SUITE = tables.read("outheap", Rival, MEASURES, prepare=prepare)
