# SPDX-License-Identifier: MIT
"""The fast paths, in each build."""

from __future__ import annotations

from ....model import Case, Workload
from .. import callgrind
from ..implementations import OURS, RIVAL
from .cases import BOTH, FULL, ONE_THREAD, OTHER_BUILDS, QUICK, SWITCHES

LOCALS = (OURS, RIVAL, "frame", "frame_8", "camllocal", "camllocal_each", "generational")
TREES = (OURS, RIVAL, "naive", "naive-0.4.0", "frame", "camllocal", "ocaml", "generational")

WORKLOADS = (
    Workload(
        "pair",
        "create and delete in batches, modify (processor time)",
        (
            Case(
                "",
                ("0.03", "5"),
                (
                    OURS,
                    RIVAL,
                    "floor",
                    *SWITCHES,
                    "boxroot_stw",
                    "by_handle",
                    "in_storage",
                    *ONE_THREAD,
                    "malloc",
                    "generational",
                    "global",
                ),
                seconds=1.3,
            ),
            Case("", ("0.02", "5"), (OURS, RIVAL, "floor"), builds=OTHER_BUILDS, seconds=0.9),
        ),
    ),
    Workload(
        "instructions",
        "instructions per operation, batches of 1,000, loop excluded (callgrind); bytes of inlined code",
        (
            Case(
                "",
                (),
                (OURS, RIVAL, "floor", "thread_unsafe", "by_handle", "in_storage", *ONE_THREAD, "malloc"),
                seconds=4,
                once=True,
            ),
            Case("", (), (OURS, RIVAL, "floor"), builds=OTHER_BUILDS, seconds=4, once=True),
        ),
        program="pair",
        measure=callgrind.instructions,
    ),
    Workload(
        "local_roots",
        "fixpoint of depth N through C and back (processor time of one computation)",
        (
            Case(
                "",
                ("0.03", "5"),
                (OURS, RIVAL, "thread_unsafe", "naive", "naive-0.4.0", "frame", "camllocal", "ocaml", "generational"),
                QUICK,
                seconds=0.9,
            ),
            Case("", ("0.02", "5"), BOTH, QUICK, ("clang",), seconds=0.7),
            Case(
                "",
                ("0.1", "9"),
                (
                    OURS,
                    RIVAL,
                    *SWITCHES,
                    "naive",
                    "naive-0.4.0",
                    "frame",
                    "camllocal",
                    "ocaml",
                    *ONE_THREAD,
                    "generational",
                    "global",
                ),
                FULL,
                seconds=5.5,
            ),
            Case("", ("0.1", "9"), (OURS, RIVAL, "generational"), FULL, OTHER_BUILDS, seconds=5.5),
        ),
        modules=("fixpoint",),
    ),
    Workload(
        "locals",
        "N values that a function of C keeps while it runs (processor time of a call)",
        (
            Case("", ("0.02", "7"), LOCALS, QUICK, seconds=1.2),
            Case("", ("0.05", "15"), LOCALS, FULL, seconds=5),
        ),
        modules=("keeper",),
    ),
    Workload(
        "trees",
        "a tree that C builds, walks through, and maps, with a function call for each node (processor time of a node)",
        (
            Case("", ("0.03", "5", "10,18"), TREES, QUICK, seconds=1.8),
            Case("", ("0.1", "9", "10,18"), (*TREES, *ONE_THREAD, "thread_unsafe", "boxroot_stw"), FULL, seconds=7),
        ),
        modules=("tree",),
    ),
)
