# SPDX-License-Identifier: MIT
"""The suite of Boxroot: what will run, and its programs."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

from ... import fetch
from ...compiler import BUILDS, BUILT, BuildError, Compiler
from ...machine import first_line
from ...model import Absence, Job, Plan, Suite
from ...options import chosen
from ...progress import Steps
from . import build, targets
from .implementations import IMPLEMENTATIONS, NO_ROOT, OURS, RIVAL, VARIANTS
from .workloads import WORKLOADS

ONLY_5 = "OCaml 5 only"


def jobs_of(options, ocaml5: bool, absent: list[Absence]) -> list[Job]:
    workloads, implementations = chosen(options.only, WORKLOADS), chosen(options.impl, IMPLEMENTATIONS)
    builds = chosen(options.build, BUILDS) if options.build else None
    jobs: dict[tuple, Job] = {}
    for w in (w for w in WORKLOADS.values() if w.name in workloads):
        for c in (c for c in w.cases if options.mode in c.modes and (options.case or "") in c.label):
            for b in (b for b in BUILDS if b in (builds or c.builds)):
                for i in (i for i in c.implementations if i in implementations):
                    job = Job(w, c, i, b)
                    if not ocaml5 and (c.ocaml5_only or IMPLEMENTATIONS[i].ocaml5_only):
                        absent.append(Absence(*job.key, ONLY_5))
                    else:
                        jobs.setdefault(job.key, job)  # with --build, cases can fall together
    return list(jobs.values())


def without_what_is_missing(jobs: list[Job], compiler: Compiler, absent: list[Absence]) -> list[Job]:
    for b in dict.fromkeys(j.build for j in jobs):
        if not compiler.can(b):
            absent += [Absence(*j.key, f"{compiler.c_command(b)[0]} is missing") for j in jobs if j.build == b]
            jobs = [j for j in jobs if j.build != b]
    jobs = fetch.with_commands(jobs, absent)
    if not shutil.which("valgrind"):
        absent += [Absence(*j.key, "valgrind is missing") for j in jobs if j.workload.measure]
        jobs = [j for j in jobs if not j.workload.measure]
    return jobs


def build_all(jobs: list[Job], compiler: Compiler, plan: Plan) -> None:
    wanted = {j.program: j for j in jobs}

    def one(job: Job):
        return build.program(job.workload, IMPLEMENTATIONS[job.implementation], compiler, job.build)

    with Steps("building", len(wanted)) as steps, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for key, future in [(k, pool.submit(one, j)) for k, j in wanted.items()]:
            steps.start(f"{key[0]} with {key[1]}")
            try:
                plan.programs[key] = future.result()
            except (BuildError, fetch.FetchError) as error:
                why = "was not built: " + " / ".join(line[:200] for line in str(error).strip().splitlines()[:4])
                plan.absent += [Absence(*j.key, why) for j in jobs if j.program == key]
            steps.advance()


def prepare(options, compiler: Compiler, prefix, say) -> Plan:
    plan = Plan()
    jobs = without_what_is_missing(jobs_of(options, compiler.ocaml5, plan.absent), compiler, plan.absent)
    for b in dict.fromkeys(j.build for j in jobs):
        command = compiler.c_command(b)
        plan.facts[f"C code, build {b}"] = first_line([command[0], "--version"]) + ": " + " ".join(command)
    if options.estimate:
        plan.jobs = jobs
        return plan
    build_all(jobs, compiler, plan)
    plan.jobs = [j for j in jobs if j.program in plan.programs]
    plan.arguments["cores"] = str(os.cpu_count())
    if any("{text}" in a for j in plan.jobs for a in j.case.args):
        plan.arguments["text"] = str(fetch.text(BUILT / "text", compiler.where, say))
    return plan


CAVEATS = """\
* On a shared machine, differences of a few percent between single runs mean nothing, in either direction.
* "Processor time" is that of the process (of the thread, for pauses): it leaves out what other programs do, not
  what they do to caches.
* `gc`, `ocaml`, `ocaml_ref`, `ocaml_list` and `ocaml_array` hold values where the GC finds them by itself. Foreign
  code has no such choice; they are there as baselines. `malloc` keeps nothing alive. `dll`, `rem`, `bitmap` and
  `thread_unsafe` work on one thread only.
* Each library is compiled as it ships (this one as a single unit, 0.4.0 as three), with the same compiler and
  flags: those that OCaml reports for C code. A case that names another build (`-O2`, `clang`) has all its columns
  compiled so.
* `floor` is what a create and a delete cost that touch nothing but a free list: it keeps nothing alive.
* "root work, own" counts the instructions of the library and its stubs. "with GC calls" adds what they call:
  promotion and, where the library hands roots to the collector one by one, marking, which for this library happens
  inside the collector's marker.
* Peak heap counts the OCaml heap; memory per root is the growth of the process while the roots are made, their
  array excepted.
* In `crowd`, 0.4.0 loses values of roots whose domain has ended: what comes after is no comparison then."""

SUITE = Suite(
    name="boxroot",
    title="Boxroot",
    ours=OURS,
    base=RIVAL,
    base_title="0.4.0",
    implementations=IMPLEMENTATIONS,
    workloads=WORKLOADS,
    groups={
        "Fast paths": ("pair", "instructions", "local_roots", "locals", "trees"),
        "Programs": (
            "closures",
            "perm_count",
            "ephemeral",
            "choice",
            "parallel",
            "synthetic",
            "root_share",
            "globroots",
            "pressure",
            "index",
            "server",
        ),
        "Remote deletion": (
            "remote",
            "flood",
            "old_roots",
            "churn",
            "pinned",
            "exchange",
            "crowd",
            "contention",
        ),
        "Several domains": tuple(w for w in WORKLOADS if w.endswith("_domains")),
        "Weak roots": ("observers",),
        "Pauses and memory": ("pause", "release", "occupancy", "pacing"),
    },
    floors={
        "pair": "floor",
        "instructions": "floor",
        "local_roots": "ocaml",
        "trees": "ocaml",
        "perm_count": "ocaml",
        "ephemeral": "ocaml",
        "synthetic": "ocaml",
        "globroots": "ocaml",
        "parallel": "ocaml_ref",
        "crowd": "ocaml_ref",
        "churn": "ocaml_array",
        "pacing": "ocaml_array",
        "pause": "ocaml_array",
        "choice": "ocaml",
        "pressure": "ocaml",
        "closures": "ocaml_array",
        "local_roots_domains": "ocaml",
        "perm_count_domains": "ocaml",
        "ephemeral_domains": "ocaml",
        "choice_domains": "ocaml",
        "globroots_domains": "ocaml",
        "synthetic_domains": "ocaml",
    },
    headlines=(
        ("closures", "all of it"),
        ("pair", "create+delete, geometric mean"),
        ("pair", "modify, geometric mean"),
        ("local_roots", "N=1000"),
        ("perm_count", "time"),
        ("ephemeral", "time"),
        ("parallel", "time"),
        ("synthetic", "time"),
        ("globroots", "time"),
        ("index", "per word"),
        ("remote", "delete, thread"),
        ("remote", "delete, domain"),
        ("churn", "delete and create"),
        ("crowd", "pass on"),
        ("pause", "worst pause, processor time"),
        ("pause", "full major"),
        ("pause", "peak heap"),
        ("release", "resident: compacted once"),
    ),
    caveats=CAVEATS,
    prepare=prepare,
    check=targets.check,
    unmeasured=targets.unmeasured,
    rounds={"quick": 5, "full": 7},
    minutes={"quick": 6.5, "full": float("inf")},
    must_succeed=(OURS,),
    beside=("floor", "generational", "ocaml", "ocaml_ref", "ocaml_list", "ocaml_array", "camllocal", "malloc"),
    baselines=NO_ROOT,
    variants=VARIANTS,
    curve=("pause", "20 M, shuffled"),
)
