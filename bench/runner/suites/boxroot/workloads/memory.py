# SPDX-License-Identifier: MIT
"""Pauses, memory, and the GC's pace."""

from __future__ import annotations

from ....model import Case, Workload
from ..implementations import OURS, RIVAL
from .cases import BOTH, FULL, ONE_THREAD, QUICK


def pacing(roots: int, immediates: int, window: int, overhead: int, millions: int, **options) -> Case:
    """One setting of `pacing`: roots, percent of immediates, words of the window, space_overhead (0: the default),
    words to allocate."""
    label = f"{roots / 1e6:g} M roots, {immediates} % immediates, window {window / 1e6:g} Mwords"
    arguments = tuple(str(n) for n in (roots, immediates, window, overhead, millions))
    return Case(label + (f", o={overhead}" if overhead else ""), arguments, **{"implementations": BOTH, **options})


WORKLOADS = (
    Workload(
        "pause",
        "pauses with many live roots",
        (
            Case("1 M, shuffled", ("1000000", "shuffled", "5"), (OURS, RIVAL, "ocaml_list"), QUICK, seconds=1.2),
            Case(
                "5 M, shuffled",
                ("5000000", "shuffled", "4"),
                (OURS, RIVAL, "boxroot_stw", "ocaml_list"),
                QUICK,
                seconds=7,
            ),
            *(
                Case(
                    f"{size} M, {order}",
                    (f"{size}000000", order, "10"),
                    (OURS, RIVAL, "boxroot_stw", "generational", *ONE_THREAD, "ocaml_list", "ocaml_array"),
                    FULL,
                    seconds=4 * size,
                    timeout=900,
                )
                for size in (1, 5, 20)
                for order in ("shuffled", "sequential")
            ),
        ),
        modules=("bag",),
        context=("heap at start",),
    ),
    Workload(
        "release",
        "memory that goes back to the system after deletion",
        (
            Case("20 M roots", ("roots", "20000000"), BOTH, QUICK, seconds=1),
            Case(
                "20 M roots",
                ("roots", "20000000"),
                (OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "generational", "ocaml_array"),
                FULL,
                seconds=4,
                timeout=600,
            ),
            Case("500 domains", ("domains", "500", "100000"), BOTH, seconds=2, ocaml5_only=True),
        ),
        modules=("slots",),
        context=("at the start",),
    ),
    Workload(
        "occupancy",
        "memory of roots that come and go at random, of what they would fill",
        (
            Case("100,000, 2,000 domains", ("domains", "100000", "2000", "1000"), BOTH, seconds=1.2, ocaml5_only=True),
            Case("100,000, beside 800 domains", ("beside", "100000", "800", "1000"), BOTH, seconds=1, ocaml5_only=True),
            Case("100,000, one domain", ("random", "100000", "100"), BOTH, seconds=0.8),
            Case("100,000 immediates, one domain", ("immediates", "100000", "100"), BOTH, seconds=0.4),
            Case("1 M, one domain", ("random", "1000000", "8"), BOTH, FULL, seconds=2),
        ),
        modules=("slots",),
    ),
    Workload(
        "pacing",
        "the heap that the GC's pace allows beside many roots",
        (
            pacing(5_000_000, 100, 20_000, 0, 100, modes=("quick", "full"), seconds=1.5),
            pacing(5_000_000, 0, 600_000, 0, 100, modes=QUICK, seconds=3),
            *(
                pacing(
                    5_000_000,
                    share,
                    window,
                    0,
                    200,
                    modes=FULL,
                    implementations=(OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "ocaml_array"),
                    seconds=4,
                )
                for share, window in ((0, 20_000), (0, 600_000), (50, 600_000), (100, 600_000))
            ),
        ),
        modules=("slots",),
        context=("major cycles",),
    ),
    Workload(
        "observers",
        "1 M values that C keeps in sight: by roots, which hold them, weak roots, a weak array (processor time)",
        (
            Case("1 M", ("1000000", "3"), (OURS, "weak"), QUICK, seconds=3),
            Case("1 M", ("1000000", "3", "no-thread"), ("weak_array",), QUICK, seconds=4),
            Case("1 M", ("1000000", "7"), (OURS, RIVAL, "weak", "generational"), FULL, seconds=8),
            Case("1 M", ("1000000", "7", "no-thread"), ("weak_array",), FULL, seconds=8),
        ),
        modules=("watcher",),
    ),
)
