# SPDX-License-Identifier: MIT
"""Figures that the authors of Boxroot and of the page table published, to stand beside ours. Machines differ: what
compares are ratios within a column."""

from __future__ import annotations

from dataclasses import dataclass

IN_README = "README of 0.4.0, AMD Ryzen 5850U"
FIRST = "the first experiment's README"


@dataclass(frozen=True)
class Published:
    """Seconds by implementation. `generation`: 4 or 5."""

    workload: str
    metric: str
    generation: int
    source: str
    seconds: dict


NAMES = ("boxroot-0.4.0", "gc", "ocaml", "generational", "ocaml_ref", "dll", "rem", "global")


def row(workload: str, generation: int, *seconds: float) -> Published:
    return Published(workload, "time", generation, IN_README, dict(zip(NAMES, seconds)))


PUBLISHED = [
    row("perm_count", 4, 1.71, 1.49, 1.20, 5.90, 1.47, 2.13, 1.97, 48.19),
    row("perm_count", 5, 1.42, 1.62, 1.25, 5.43, 1.69, 1.69, 1.55, 49.74),
    row("synthetic", 4, 6.19, 7.15, 6.21, 10.83, 7.03, 6.68, 6.41, 15.89),
    row("synthetic", 5, 2.86, 2.98, 2.82, 4.80, 2.99, 3.04, 3.01, 6.08),
    row("globroots", 4, 1.03, 1.35, 0.89, 1.14, 1.27, 0.99, 0.95, 1.24),
    row("globroots", 5, 0.82, 1.01, 0.72, 0.92, 1.02, 0.84, 0.78, 1.34),
    Published(
        "choice",
        "time",
        4,
        FIRST,
        {
            "ocaml": 1.88,
            "gc": 2.09,
            "global_in_place": 12.05,
            "generational_in_place": 4.35,
            "generational": 4.29,
            "boxroot-0.4.0": 2.04,
        },
    ),
]

PAGE_TABLE = [  # (what, published, workload, case, metric, ours, base)
    (
        "major GC, random heap, new table against the legacy one (4.14)",
        "0.74",
        "marking",
        "0.8 GB, random",
        "major GC, median",
        "table",
        "stock",
        "4.",
    ),
    (
        "major GC, random heap, new table against no naked pointers (4.14)",
        "0.99",
        "marking",
        "0.8 GB, random",
        "major GC, median",
        "table",
        "no-naked",
        "4.",
    ),
    (
        "major GC, random heap, huge pages against none",
        "about 0.90",
        "marking",
        "0.8 GB, random",
        "major GC, median",
        "outheap",
        "table",
        "",
    ),
    (
        "major GC, sequential heap, huge pages against none",
        "about 1",
        "marking",
        "0.8 GB, sequential",
        "major GC, median",
        "outheap",
        "table",
        "",
    ),
]
