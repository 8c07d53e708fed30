# SPDX-License-Identifier: MIT
"""The suite of the safe Rust layer: what will run, and its programs."""

from __future__ import annotations

import shutil
from pathlib import Path

from ... import fetch
from ...compiler import BUILT, BuildError, Compiler
from ...machine import first_line
from ...model import Absence, Job, Plan, Suite
from ...options import chosen
from ...progress import Steps
from . import targets
from .build import Builder
from .tables import BASE, BUILDS, CLIENTS, IMPLEMENTATIONS, INTEROP, OCAML, OURS, WORKLOADS


def jobs_of(options) -> list[Job]:
    workloads, implementations = chosen(options.only, WORKLOADS), chosen(options.impl, IMPLEMENTATIONS)
    return [
        Job(w, c, i)
        for w in WORKLOADS.values()
        if w.name in workloads
        for c in w.cases
        if options.mode in c.modes and (options.case or "") in c.label
        for i in c.implementations
        if i in implementations
    ]


def prepare(options, compiler: Compiler, prefix: Path, say) -> Plan:
    plan, jobs = Plan(), jobs_of(options)
    if not shutil.which("valgrind"):
        counted = [j for j in jobs if j.workload.name.endswith("counted")]
        plan.absent += [Absence(*j.key, "valgrind is missing") for j in counted]
        jobs = [j for j in jobs if j not in counted]
    plan.facts["C code"] = " ".join(compiler.c_command())
    plan.facts["Rust"] = f"{first_line(['rustc', '--version'])}, cargo's release profile"
    if options.estimate:
        plan.jobs = jobs
        return plan
    builder = Builder(compiler, BUILT / "rust" / compiler.version)
    wanted = {j.program: j for j in jobs}
    with Steps("building", len(wanted)) as steps:
        for program, job in wanted.items():
            steps.start(f"{job.workload.source} with {job.implementation}")
            try:
                plan.programs[program] = builder.program(job)
            except (BuildError, fetch.FetchError) as error:
                why = "was not built: " + " / ".join(line[:200] for line in str(error).strip().splitlines()[:4])
                plan.absent += [Absence(*j.key, why) for j in jobs if j.program == program]
            steps.advance()
    plan.jobs = [j for j in jobs if j.program in plan.programs]
    return plan


CAVEATS = """\
* On a shared machine, differences of a few percent between single runs mean nothing, in either direction.
* Each program checks the results of all functions that it measures, with every implementation, before it measures.
* C code is compiled with the flags that OCaml reports; the same library inside the crate with those that cargo's
  release profile gives (-O3). Rust is compiled by cargo's release profile, as it is by default.
* `c` has what a C programmer would write: roots of this library in `local_roots` and `perm_count`, local roots in
  `calls` and `conversion`, no test for what the type promises, and no conversion to UTF-8.
* The other crates are used in the fastest way that their interfaces offer, also by functions that are `unsafe`.
* "processor time" of builds is that of all processes of cargo. `cargo check` and builds run on all cores.
* `ocaml-interop` 0.12 is made for OCaml 5; with 4.14 it is shown for comparison only."""

SUITE = Suite(
    name="rust",
    title="ocaml-boxroot",
    ours=OURS,
    base=BASE,
    base_title="C",
    implementations=IMPLEMENTATIONS,
    workloads=WORKLOADS,
    groups={
        "Roots": ("local_roots", "perm_count"),
        "Calls and the lock": ("calls",),
        "Conversions": ("conversion",),
        "Instructions": tuple(w for w in WORKLOADS if w.endswith("counted")),
        "Building": ("clean build", "client"),
    },
    floors={},
    headlines=(
        ("local_roots", "N=1"),
        ("local_roots", "N=1000"),
        ("perm_count", "time"),
        ("calls", "no access, int"),
        ("calls", "read, string"),
        ("calls", "read-write, float"),
        ("calls", "closure called"),
        ("calls", "lock released"),
        ("calls", "attached"),
        ("conversion", "string list from OCaml"),
        ("conversion", "int list to OCaml"),
        ("conversion", "string list to OCaml"),
        ("conversion", "records to OCaml"),
        ("clean build", "time"),
        ("client", "time"),
    ),
    caveats=CAVEATS,
    prepare=prepare,
    check=targets.check,
    unmeasured=targets.unmeasured,
    rounds={"quick": 3, "full": 7},
    minutes={"quick": 2.5, "full": float("inf")},
    must_succeed=(OURS, BASE),
    beside=(INTEROP, OCAML),
    why_not={(BASE, BUILDS): "there is no crate to build", (BASE, CLIENTS): "there are no macros to expand"},
)
