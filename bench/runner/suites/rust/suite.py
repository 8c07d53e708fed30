# SPDX-License-Identifier: MIT
"""The suite of the safe Rust layer: what will run, and its programs. Its tables: bench/suites/rust.toml."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ... import tables
from ...compiler import BUILT, Compiler
from ...machine import first_line
from ...model import Plan
from . import cargo, counts
from .build import Builder
from .names import BASE, BUILDS, CLIENTS


@dataclass(frozen=True)
class Implementation:
    """The same externals in a folder of rivals/rust/ with this name. `crate`: what the folder depends on."""

    name: str
    note: str
    crate: str = ""  # a line of Cargo.toml; {root} is this repository


def prepare(options, compiler: Compiler, prefix: Path, say) -> Plan:
    plan = Plan()
    jobs = plan.without_versions(SUITE, SUITE.jobs(options), compiler.version)
    if not shutil.which("valgrind"):
        jobs = plan.without(jobs, lambda j: j.workload.name.endswith("counted"), "valgrind is missing")
    plan.facts["C code"] = " ".join(compiler.c_command())
    plan.facts["Rust"] = f"{first_line(['rustc', '--version'])}, cargo's release profile"
    plan.build(jobs, Builder(compiler, BUILT / "rust" / compiler.version, SUITE.implementations).program)
    return plan


MEASURES = {f.__name__: f for f in (cargo.clean_build, cargo.check, counts.between_marks, counts.of_all)}
SUITE = tables.read(
    "rust",
    Implementation,
    MEASURES,
    prepare=prepare,
    why_not={(BASE, BUILDS): "there is no crate to build", (BASE, CLIENTS): "there are no macros to expand"},
)
