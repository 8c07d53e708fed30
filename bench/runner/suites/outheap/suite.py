# SPDX-License-Identifier: MIT
"""The suite of Outheap: what will run, and its programs."""

from __future__ import annotations

import os
import subprocess

from ... import fetch
from ...compiler import BUILT, C_FLAGS, BuildError, Compiler
from ...machine import available_gigabytes, chosen_of, first_line
from ...model import Absence, Job, Plan, Suite
from ...options import chosen
from ...progress import Steps
from . import targets
from .programs import Builder
from .runtimes import (
    ADAPTIVE,
    BASE,
    CLANG,
    COUNTING,
    FIXED,
    NO_TABLE,
    OURS,
    PAUSES,
    RIVALS,
    SHIFTED,
    TABLE,
    Missing,
    Runtimes,
)
from .tables import WORKLOADS


def jobs_of(options, version: str, absent: list[Absence]) -> list[Job]:
    """`words` and `system calls` belong to the workload they count."""
    names = {w: {w, w.split(",")[0], *(["compaction"] if w == "system calls" else [])} for w in WORKLOADS}
    wanted = set((options.only or ",".join(w for w in WORKLOADS if "," not in w)).split(","))
    if unknown := wanted - set().union(*names.values()):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; see --list")
    rivals, memory, jobs = chosen(options.impl, RIVALS), available_gigabytes(), []
    for workload in (w for w in WORKLOADS.values() if names[w.name] & wanted):
        for case in (c for c in workload.cases if options.mode in c.modes and (options.case or "") in c.label):
            for job in (Job(workload, case, r) for r in case.implementations if r in rivals):
                if case.gigabytes > memory:
                    absent.append(Absence(*job.key, f"needs {case.gigabytes:.1f} GB of memory; {memory:.1f} were free"))
                elif case.ocaml5_only and version.startswith("4."):
                    absent.append(Absence(*job.key, "OCaml 5 only"))
                elif not version.startswith(RIVALS[job.implementation].versions):
                    absent.append(Absence(*job.key, f"OCaml {RIVALS[job.implementation].versions}x only"))
                else:
                    jobs.append(job)
    return jobs


def build_all(jobs: list[Job], builder: Builder, plan: Plan) -> None:
    wanted = dict.fromkeys(j.program for j in jobs)

    def leave_out(program: tuple, why: str) -> None:
        plan.absent += [Absence(*j.key, why) for j in jobs if j.program == program]

    with Steps("building", len(wanted) + 1) as steps:
        steps.start("the runtimes")
        builder.runtimes.prepare([RIVALS[r] for r in dict.fromkeys(r for _, r, _ in wanted)])
        steps.advance()
        for program in wanted:
            source, rival, _ = program
            steps.start(f"{source} with {rival}")
            try:
                plan.programs[program] = builder.program(source, RIVALS[rival])
            except Missing as reason:
                leave_out(program, str(reason))
            except (BuildError, fetch.FetchError, OSError, subprocess.CalledProcessError) as error:
                lines = str(error).strip().splitlines()
                leave_out(program, "was not built: " + " / ".join(line[:200] for line in [*lines[1:3], *lines[-2:]]))
            steps.advance()


def prepare(options, compiler: Compiler, prefix, say) -> Plan:
    plan = Plan()
    folder = BUILT / "outheap" / compiler.version
    ready = options.runtimes.resolve() if options.runtimes else None
    runtimes = Runtimes(compiler, prefix, folder / "runtimes", ready)
    builder = Builder(compiler, runtimes, folder)
    jobs = jobs_of(options, compiler.version, plan.absent)
    jobs = fetch.with_commands(jobs, plan.absent)
    plan.facts["C compiler"] = first_line([compiler.cc, "--version"]) + ", flags " + " ".join(C_FLAGS)
    plan.facts["huge pages, defrag"] = chosen_of("/sys/kernel/mm/transparent_hugepage/defrag") or "not visible"
    plan.facts["C library"] = (
        " ".join((os.confstr("CS_GNU_LIBC_VERSION") or "").split()) if "CS_GNU_LIBC_VERSION" in os.confstr_names else ""
    )
    if options.estimate:
        plan.jobs = jobs
        return plan
    build_all(jobs, builder, plan)
    for coq in filter(None, builder.built_coq.values()):
        plan.facts["Coq"] = ", ".join((coq / "versions").read_text().splitlines())
    plan.jobs = [j for j in jobs if j.program in plan.programs]
    return plan


CAVEATS = """\
* On a shared machine, differences of a few percent between single runs mean nothing, in either direction.
* All programs of a row are the same objects linked with different runtimes. Where code is placed in memory differs
  nevertheless, and can by itself make a difference of a few percent in either direction.
* The heap of `marking` is made by C code straight in the major heap, so that all runtimes get the same requests in
  the same order. A random heap is the worst case for caches and TLB, a sequential one the best; programs lie
  between.
* "major GC" is one cycle of marking and sweeping, of which marking is the larger part. "best" and "median" are
  those of the collections in one process.
* "Processor time" is that of all threads, in user mode and in the kernel. `ocamlopt` runs without the assembler,
  which is another program.
* The host of a virtual machine may take free memory back; the benchmarks touch memory before each run, which leaves
  that out in part.
* Where the kernel's mode of transparent huge pages is "always", `stock` has them as well.
* "resident" is what the kernel tells in /proc/self/statm; "over time" is looked at every 10 ms."""

SUITE = Suite(
    name="outheap",
    title="Outheap",
    ours=OURS,
    base=BASE,
    base_title="the stock runtime",
    implementations=RIVALS,
    workloads=WORKLOADS,
    groups={
        "Marking": ("marking", "marking, layout", "structures", "access"),
        "Programs": ("ocamlopt", "coq"),
        "Operations": ("polymorphic",),
        "Regions": ("regions", "theories", "dictionary", "coq images"),
        "Hash-consing": ("hashcons", "crowded", "coq hash-consing"),
        "Owned data": ("linear", "cache"),
        "An idle processor": ("helper", "helper lanes", "ocamlopt with a helper"),
        "Minor heaps": ("redblack", "young", "ocamlopt, minor heaps", "coq, minor heaps"),
        "Compaction and memory": ("compaction", "turnover", "survivors", "follow", "system calls"),
        "Memory spent": ("ocamlopt with a floor", "coq with a floor"),
        "What the marker looks at": ("marking, words", "ocamlopt, words", "coq, words"),
    },
    floors={},
    headlines=(
        ("marking", "major GC, median"),
        ("ocamlopt", "processor time"),
        ("coq", "processor time"),
        ("ocamlopt", "peak resident"),
        ("coq", "peak resident"),
        ("compaction", "time: compacted"),
        ("compaction", "mappings: compacted"),
        ("compaction", "resident: compacted"),
        ("compaction", "resident: all freed, compacted"),
        ("turnover", "time per array"),
        ("regions", "full major"),
        ("regions", "load"),
        ("dictionary", "sum of Pss: under load"),
        ("coq images", "processor time"),
        ("coq images", "sum of Pss"),
        ("system calls", "all that concern memory"),
    ),
    caveats=CAVEATS,
    prepare=prepare,
    check=targets.check,
    unmeasured=targets.unmeasured,
    rounds={"quick": 3, "full": 5},
    minutes={"quick": 5.5, "full": float("inf")},
    must_succeed=(OURS, COUNTING),
    beside=(TABLE,),
    baselines=("thp-only", NO_TABLE),
    variants=(TABLE, "table-order", "outheap-always", ADAPTIVE, PAUSES, *FIXED, CLANG, *SHIFTED, COUNTING),
    curve=("compaction", "2 GB"),
)
