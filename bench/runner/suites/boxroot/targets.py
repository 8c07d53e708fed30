# SPDX-License-Identifier: MIT
"""The figures to reach against 0.4.0 in the same run."""

from __future__ import annotations

from dataclasses import dataclass

from ...results import Results
from ...verdicts import Verdict, distance
from .implementations import OURS, RIVAL


@dataclass(frozen=True)
class Target:
    """OURS <= bound × base for a metric, in every case whose label begins with `case`. With a unit: OURS <= bound. With
    a floor: what is left above it is at most so much of what is left with the base (see verdicts.py)."""

    name: str
    workload: str
    metric: str
    bound: float
    case: str = ""
    base: str = RIVAL
    old_bound: float | None = 1.0  # with OCaml 4.14; None: no target there
    unit: str = ""
    floor: str = ""


BATCHES = (1, 10, 100, 1000)
SIZES = (2, 5, 10, 20, 50)
DEPTHS = (1, 2, 5, 10, 100, 1000)
TARGETS = [
    # The fast paths, in every build.
    Target("create+delete", "pair", "create+delete, geometric mean", 0.75, old_bound=0.9),
    *(Target(f"create+delete, batch {n}", "pair", f"create+delete, batch {n}", 1.0) for n in BATCHES),
    *(
        Target(f"create+delete, {n} at a time{order}", "pair", f"create+delete, {n} at a time{order}", 1.0)
        for n in SIZES
        for order in ("", ", last first")
    ),
    Target("modify", "pair", "modify, geometric mean", 0.9),
    Target("instructions of create", "instructions", "create", 0.999),
    Target("instructions of delete", "instructions", "delete", 0.999),
    *(Target(f"local_roots, N = {n}", "local_roots", f"N={n}", 0.95) for n in DEPTHS),
    # The authors' programs.
    Target("perm_count", "perm_count", "time", 0.7),
    Target("ephemeral", "ephemeral", "time", 0.7),
    Target("parallel", "parallel", "time", 0.7, old_bound=None),
    Target("synthetic", "synthetic", "time", 1.0, floor="ocaml"),
    Target("root work in synthetic", "root_share", "root work, own", 0.5),
    Target("globroots", "globroots", "time", 1.0, floor="ocaml"),
    # No cliff.
    *(
        Target(f"{what}{when} after a flood", "flood", what + when, bound, old_bound=bound, unit=unit)
        for when in ("", ", while marking")
        for what, bound, unit in (
            ("minor collection", 1.0, "ms"),
            ("next creation", 100.0, "us"),
            ("worst creation before any collection", 100.0, "us"),
        )
    ),
    Target("replacing old roots", "churn", "delete and create", 1.0),
    Target("modifying old roots", "churn", "modify", 1.0),
    Target(
        "deletion of old roots while marking, in a row",
        "old_roots",
        "delete, old roots while marking, in a row",
        1.3,
        old_bound=1.3,
    ),
    Target(
        "deletion of old roots while marking, shuffled",
        "old_roots",
        "delete, old roots while marking, shuffled",
        1.3,
        old_bound=1.3,
    ),
    Target("deletion while marking, few values", "remote", "delete, while-marking", 1.3, old_bound=1.3),
    Target("worst pause", "pause", "worst pause, processor time", 1 / 20, case="5 M, shuffled"),
    Target("worst pause", "pause", "worst pause, processor time", 1 / 20, case="20 M, shuffled"),
    Target("99.9th percentile pause", "pause", "99.9th percentile pause, processor time", 1.2, case="5 M, shuffled"),
    Target("full major collection", "pause", "full major", 0.6, case="5 M, shuffled"),
    Target("full major collection", "pause", "full major", 0.6, case="20 M, shuffled"),
    Target("memory per live root", "pause", "memory per root", 1.0),
    Target("peak heap", "pause", "peak heap", 1.15),
    Target("peak heap, against a list", "pause", "peak heap", 1.0, base="ocaml_list"),
    Target("memory after compaction", "release", "resident: compacted once", 1.5, old_bound=1.5),
    Target("mappings after compaction", "release", "mappings: compacted once", 1.5, old_bound=1.5),
    Target(
        "memory, three full majors after domains ended",
        "release",
        "resident: after three full majors",
        1.5,
        case="500 domains",
        old_bound=None,
    ),
    # OCaml's GC by itself goes up to 1.1 (space_overhead 40) to 1.9 times (240) this far.
    Target(
        "heap beside roots",
        "pacing",
        "peak heap, of what space_overhead promises",
        2.0,
        old_bound=None,
        unit="of the promise",
    ),
    Target("time beside roots", "pacing", "time", 1.0),
    Target("99.9th percentile pause beside roots", "pacing", "99.9th percentile pause, processor time", 1.2),
    Target("pinned pools: time", "pinned", "time", 1.1, old_bound=1.1),
    Target("pinned pools: worst step", "pinned", "worst step, processor time", 1.1, old_bound=1.1),
    # Remote deletion.
    Target("deletion without the lock", "remote", "delete, thread", 0.6),
    Target("deletion in a blocking section", "remote", "delete, blocking-section", 0.6),
    Target("deletion by another domain", "remote", "delete, domain", 0.8, old_bound=None),
    Target("deletion by two domains at once", "remote", "delete, two-domains", 0.8, old_bound=None),
    Target("creation after deletion by a thread", "remote", "create again, after thread", 1.1, old_bound=1.1),
    Target("index", "index", "per word", 1.0),
]

# The worst pause must not grow with the number of roots.
PAUSE_GROWTH = ("worst pause with 20 M roots, against 5 M", "20 M, shuffled", "5 M, shuffled", 1.5)


def check(results: Results, version: str) -> list[Verdict]:
    """Every target that this run has measured."""
    ocaml5, verdicts = not version.startswith("4."), []
    for t in TARGETS:
        bound = t.bound if ocaml5 else t.old_bound
        if bound is None:
            continue
        for case in results.cases(t.workload):
            if not case.startswith(t.case):
                continue
            name = f"{t.name} ({case})" if case else t.name
            if t.floor:
                if left := distance(results, t.workload, case, t.metric, OURS, t.base, t.floor):
                    verdicts.append(
                        Verdict(f"{name}: distance to `{t.floor}`", left.value, bound, at_floor=left.at_floor)
                    )
            elif t.unit:
                if (figure := results.median(t.workload, case, t.metric, OURS)) is not None:
                    verdicts.append(Verdict(name, figure, bound, t.unit))
            elif ratio := results.ratio(t.workload, case, t.metric, OURS, t.base):
                verdicts.append(Verdict(name, ratio.value, bound, low=ratio.low, high=ratio.high))
    name, large, small, bound = PAUSE_GROWTH
    most, least = (results.median("pause", case, "worst pause, processor time", OURS) for case in (large, small))
    if ocaml5 and most and least:
        verdicts.append(Verdict(name, most / least, bound))
    return verdicts


def unmeasured(results: Results, version: str) -> list[str]:
    ocaml5 = not version.startswith("4.")
    measured = [v.name for v in check(results, version)]
    names = {t.name for t in TARGETS if ocaml5 or t.old_bound is not None} | ({PAUSE_GROWTH[0]} if ocaml5 else set())
    return sorted(n for n in names if not any(m == n or m.startswith((n + " (", n + ":")) for m in measured))
