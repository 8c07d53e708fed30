# SPDX-License-Identifier: MIT
"""The tables of the suite: implementations and workloads."""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Case, Workload
from . import cargo, counts

OURS, BASE, INTEROP, OCAML = "ocaml-boxroot", "c", "ocaml-interop", "ocaml"


@dataclass(frozen=True)
class Implementation:
    """The same externals in a folder of rivals/rust/ with this name. `crate`: what the folder depends on."""

    name: str
    note: str
    crate: str = ""  # a line of Cargo.toml; {root} is this repository


IMPLEMENTATIONS = {
    i.name: i
    for i in [
        Implementation(
            OURS,
            "this repository's safe layer, in safe Rust only",
            'ocaml-boxroot = {{ path = "{root}/rust/ocaml-boxroot" }}',
        ),
        Implementation(BASE, "stubs in C over this repository's library, or with local roots"),
        Implementation(
            INTEROP,
            "the published crate ocaml-interop 0.12.0, over ocaml-boxroot-sys 0.4.0",
            'ocaml-interop = "=0.12.0"',
        ),
        Implementation(OCAML, "the published crate ocaml 1.3.0, over ocaml-boxroot-sys 0.4.0", 'ocaml = "=1.3.0"'),
    ]
}
ALL = tuple(IMPLEMENTATIONS)
CRATES = (OURS, INTEROP, OCAML)
FULL = ("full",)
BUILDS, CLIENTS = "clean build", "client"  # programs that are cargo's, not ours

WORKLOADS = {
    w.name: w
    for w in [
        Workload(
            "local_roots",
            "a fixpoint after N steps that calls a closure at each, with a root for each value",
            (Case("", ("0.03", "5"), ALL, seconds=1.3),),
            modules=("fixpoint",),
        ),
        Workload(
            "local_roots_counted",
            "the same: instructions of one computation",
            (Case("", ("count",), ALL, seconds=4, once=True),),
            modules=("fixpoint",),
            program="local_roots",
            measure=counts.between_marks,
        ),
        Workload(
            "perm_count",
            "all permutations in a list monad, each element in a custom block that owns a root",
            (
                Case("n=9", ("9", "persistent"), ALL, seconds=0.5),
                Case("n=10", ("10", "persistent"), ALL, FULL, seconds=6),
            ),
            modules=("cell",),
            hidden=("user time", "wall"),
        ),
        Workload(
            "perm_count_counted",
            "the same: instructions of the program",
            (Case("n=7", ("7", "persistent"), ALL, seconds=4, once=True),),
            modules=("cell",),
            program="perm_count",
            measure=counts.of_all,
        ),
        Workload(
            "conversion",
            "lists, arrays and records to vectors and back, per element",
            (
                Case("100,000 elements", ("time", "100000", "0.03"), ALL, seconds=3.5),
                Case("1,000 elements", ("time", "1000", "0.02"), ALL, FULL, seconds=2.5),
            ),
        ),
        Workload(
            "conversion_counted",
            "the same: instructions per element",
            (
                Case("1,000 elements", ("count", "1000"), ALL, seconds=12, once=True),
                Case("100,000 elements", ("count", "100000"), ALL, FULL, seconds=30, once=True),
            ),
            program="conversion",
            measure=counts.between_marks,
        ),
        Workload(
            "calls",
            "calls of exported functions by OCaml, of a closure by them, and of the lock, per call",
            (Case("", ("time", "0.02"), ALL, seconds=1.5),),
            modules=("exported",),
        ),
        Workload(
            "calls_counted",
            "the same: instructions per call",
            (Case("", ("count",), ALL, seconds=4, once=True),),
            modules=("exported",),
            program="calls",
            measure=counts.between_marks,
        ),
        Workload(
            BUILDS,
            "a release build of a library that depends on the crate alone, offline, from nothing",
            (Case("", (), CRATES, seconds=4, timeout=300),),
            base=INTEROP,
            measure=cargo.clean_build,
            context=("processor time",),
        ),
        Workload(
            CLIENTS,
            "`cargo check` of a generated crate with 200 exported functions and 50 derived types, its dependencies "
            "checked before",
            (Case("", (), CRATES, seconds=4, timeout=300),),
            base=INTEROP,
            measure=cargo.check,
            context=("processor time",),
        ),
    ]
}
