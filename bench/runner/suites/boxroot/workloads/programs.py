# SPDX-License-Identifier: MIT
"""Programs. perm_count, ephemeral, parallel, synthetic and globroots are after the authors' own."""

from __future__ import annotations

from ....model import Case, Workload
from .. import callgrind
from ..implementations import OURS, RIVAL
from .cases import BOTH, CELLS, FULL, LISTS, ONE_THREAD, OTHER_BUILDS, QUICK, QUICK_CELLS, STYLES, SWITCHES, domains

WORKLOADS = (
    Workload(
        "perm_count",
        "permutations in a list monad, a cell per element (processor time)",
        (
            Case("n=10", ("10", "persistent"), QUICK_CELLS, QUICK, seconds=2.2),
            Case("n=10", ("10", "persistent"), (*CELLS, *SWITCHES), FULL, seconds=2.2),
            Case("n=10", ("10", "persistent"), BOTH, FULL, OTHER_BUILDS, seconds=2.2),
            Case("n=10", ("10", "persistent"), ("generational",), seconds=9, once=True),
            Case("n=10", ("10", "persistent"), ("global",), FULL, seconds=60, timeout=600, once=True),
        ),
        modules=("cell",),
        hidden=("wall",),
    ),
    Workload(
        "ephemeral",
        "the same with lists that are changed in place (processor time)",
        (
            Case("n=10", ("10", "ephemeral"), QUICK_CELLS, QUICK, seconds=2),
            Case("n=10", ("10", "ephemeral"), (*CELLS, *SWITCHES), FULL, seconds=2),
            Case("n=10", ("10", "ephemeral"), ("generational",), FULL, seconds=9, once=True),
            Case("n=10", ("10", "ephemeral"), ("global",), FULL, seconds=60, timeout=600, once=True),
        ),
        program="perm_count",
        modules=("cell",),
        hidden=("wall",),
    ),
    Workload(
        "choice",
        "the list monad itself in C, a root per element, new nodes or the old ones (processor time)",
        (
            *(Case(f"{style}, n=9", ("9", style), LISTS, QUICK, seconds=0.5) for style in STYLES),
            *(
                Case(
                    f"{style}, n=10",
                    ("10", style),
                    (*LISTS, "boxroot_stw", *SWITCHES, *ONE_THREAD),
                    FULL,
                    seconds=4,
                )
                for style in STYLES
            ),
            *(
                Case(f"{style}, n=10", ("10", style), ("global",), FULL, seconds=60, timeout=600, once=True)
                for style in STYLES
            ),
        ),
        modules=("lists",),
        hidden=("wall",),
    ),
    Workload(
        "parallel",
        "domains that send each other cells, producers and consumers (per message)",
        (
            *(domains(n, "2000000", BOTH, QUICK, seconds=0.8) for n in (2, 4)),
            *(domains(n, "8000000", (OURS, RIVAL, "boxroot_stw", "ocaml_ref"), FULL, seconds=3) for n in (2, 4)),
            *(domains(n, "8000000", ("generational",), FULL, seconds=20, timeout=600, once=True) for n in (2, 4)),
        ),
        modules=("cell",),
    ),
    Workload(
        "synthetic",
        "cells and values that live and die by generation (processor time)",
        (
            Case("N=6", ("n=6",), QUICK_CELLS, QUICK, seconds=0.9),
            Case("N=8", ("n=8",), (*CELLS, *SWITCHES), FULL, seconds=3.5),
            Case("N=8", ("n=8",), ("generational",), FULL, seconds=25, once=True),
            Case("N=8", ("n=8",), ("global",), FULL, seconds=60, timeout=600, once=True),
        ),
        modules=("cell",),
        hidden=("wall", "roots created"),
    ),
    Workload(
        "root_share",
        "instructions of synthetic due to root work (callgrind)",
        (
            Case("N=2", ("n=2",), BOTH, QUICK, seconds=6, once=True),
            Case("N=4", ("n=4",), (OURS, RIVAL, "boxroot_stw", *ONE_THREAD), FULL, seconds=25, timeout=300, once=True),
        ),
        program="synthetic",
        modules=("cell",),
        measure=callgrind.root_share,
    ),
    Workload(
        "globroots",
        "1,024 cells, few changes between collections (processor time)",
        (
            Case("500,000 steps", ("500000",), (*QUICK_CELLS, "generational"), QUICK, seconds=0.6),
            Case("500,000 steps", ("500000",), (*CELLS, *SWITCHES, "generational", "global"), FULL, seconds=0.6),
        ),
        modules=("cell",),
        hidden=("wall",),
    ),
    Workload(
        "pressure",
        "a hash table with OCaml records, in C or in OCaml's heap (processor time, collections, memory)",
        (
            Case("100,000 entries", ("100000", "2000000"), (OURS, RIVAL, "ocaml", "generational"), QUICK, seconds=1.5),
            Case(
                "1 M entries",
                ("1000000", "10000000"),
                (OURS, RIVAL, "boxroot_stw", "ocaml", *ONE_THREAD),
                FULL,
                seconds=12,
                timeout=300,
            ),
            Case("1 M entries", ("1000000", "10000000"), ("generational",), FULL, seconds=60, timeout=900, once=True),
        ),
        modules=("store",),
        hidden=("wall", "user time"),
        context=("major collections",),
    ),
)
