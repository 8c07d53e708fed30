# SPDX-License-Identifier: MIT
"""The figures to reach against the stock runtime (and, with OCaml 4.14, the one without naked pointers) in the same
run."""

from __future__ import annotations

from dataclasses import dataclass

from ...results import Results
from ...verdicts import Verdict
from .runtimes import (
    ADAPTIVE,
    BASE,
    BY_CALLS,
    CELLS,
    FIXED,
    FLOOR,
    HELPED,
    HELPED_60,
    HELPED_SMALL,
    LINEAR,
    LMDB,
    MUTABLE,
    NO_NAKED,
    NO_TABLE,
    OURS,
    REGIONS,
    TABLE,
    YOUNG_SIZES,
)


@dataclass(frozen=True)
class Target:
    """`rival` <= bound × `base` for a metric, in every case whose label begins with `case`."""

    name: str
    workload: str
    case: str
    metric: str
    bound: float
    rival: str = OURS
    base: str = BASE
    versions: tuple[str, ...] = ("5.",)


TARGETS = [
    Target("major GC, table alone", "marking", "", "major GC, median", 1.0, TABLE),
    Target("major GC, table alone, sequential", "marking", "0.8 GB, sequential", "major GC, median", 0.7, TABLE),
    Target("major GC, table alone, random", "marking", "0.8 GB, random", "major GC, median", 0.8, TABLE),
    Target("major GC, table alone", "structures", "", "major GC, median", 1.0, TABLE),
    Target("major GC, table alone, trees", "structures", "0.3 GB, syntax trees", "major GC, median", 0.92, TABLE),
    Target("major GC, with huge pages", "marking", "0.8 GB, random", "major GC, median", 0.75),
    Target("major GC, with huge pages", "marking", "3 GB, random", "major GC, median", 0.65),
    Target("major GC, with huge pages", "marking", "11 GB, random", "major GC, median", 0.75),
    Target(
        "major GC, table instead of the legacy one", "marking", "", "major GC, median", 0.8, TABLE, versions=("4.",)
    ),
    Target(
        "major GC, table against no naked pointers", "marking", "", "major GC, median", 1.0, TABLE, NO_NAKED, ("4.",)
    ),
    Target("whole process", "ocamlopt", "", "processor time", 0.93, versions=("4.", "5.")),
    Target("whole process", "coq", "FMapAVL", "processor time", 0.93, versions=("4.", "5.")),
    *(
        Target("static data", "polymorphic", "static data", operation, 1.1)
        for operation in ("compare", "hash", "Obj.tag", "Weak.set", "Weak.get", "Marshal")
    ),
    *(
        Target(f"regions: {metric}", "regions", case, metric, bound, REGIONS)
        for case, metric, bound in (
            ("a map of 1 M entries", "full major", 0.004),  # 1 ms
            ("a map of 1 M entries", "private memory of a forked child", 0.01),  # 2 MB
            ("eight workers read a map", "eight workers: sum of Pss", 0.15),
            ("eight workers read a map", "eight workers: time", 0.6),
            ("a map of 1 M entries as", "load", 0.02),  # 5 ms
            ("a map of 1 M entries as", "load and read all", 0.5),
            ("a map of 1 M entries as", "load, relocated", 0.6),
            ("copies", "copy of a map", 1.0),
            ("copies", "copy of a list", 1.0),
        )
    ),
    *(
        Target(f"Coq's compiled files: {metric}", "theories", case, metric, bound, REGIONS)
        for case, metric, bound in (
            ("loaded", "load, one file", 0.02),  # 5 ms
            ("loaded", "load and read all, one file", 0.5),
            ("loaded", "load and read all, a file for each", 0.5),
            ("loaded", "load, one file, relocated", 0.6),
            ("copied", "copy", 1.0),
            ("copied", "words, maximal sharing", 0.55),
        )
    ),
    *(
        Target("images of Coq's library", "coq images", "", metric, bound, REGIONS)
        for metric, bound in (("processor time", 0.85), ("sum of Pss", 0.6))
    ),
    Target("regions", "regions", "a map of 1 M entries, evicted", "page faults", 0.01, REGIONS),  # 10
    *(
        Target(f"owned data: {metric}", "linear", case, metric, bound, LINEAR, base)
        for case, metric, bound, base in (
            ("a map of", "insert", 0.5, BASE),
            ("a map of", "insert", 0.6, MUTABLE),
            ("a map of", "full major", 0.02, BASE),
            ("a map of", "peak resident", 0.5, BASE),
            ("a map from", "insert", 1.0, BASE),
            ("a cache", "step", 0.83, BASE),
            ("a cache", "step, 99.9 %", 0.3, BASE),
            ("a cache", "peak resident", 0.6, BASE),
            ("a list", "rev", 0.5, BASE),
            ("a list", "map", 0.5, BASE),
            ("a list", "sort", 0.5, BASE),
            ("quicksort", "quicksort", 0.5, BASE),
            ("quicksort", "quicksort by partition", 0.5, BASE),
        )
    ),
    *(
        Target(f"a cache server: {metric}", "cache", case, metric, bound, LINEAR, base)
        for case in ("2 M", "10 M")
        for metric, bound, base in (
            ("latency, 99.9 %", 0.3, BASE),
            ("handled, 99.99 %", 0.3, BASE),
            ("peak resident", 0.6, BASE),
            ("SET, 256 at once", 0.83, BASE),
            ("GET, 256 at once", 0.83, BASE),
            ("SET, 256 at once", 0.5, LMDB),
            ("GET, 256 at once", 0.5, LMDB),
        )
    ),
    # Otherwise the machine was not quiet enough to tell the latencies above.
    *(
        Target("a cache server without a table: latency, 99.9 %", "cache", case, "latency, 99.9 %", 0.3, NO_TABLE)
        for case in ("2 M", "10 M")
    ),
    *(
        Target(f"helper: ocamlopt, {metric}", "ocamlopt with a helper", "", metric, bound, HELPED, OURS)
        for metric, bound in (("wall", 0.85), ("peak resident", 1.0), ("processor time", 1.05))
    ),
    *(
        Target(
            f"helper: {what} by the domain",
            "helper lanes",
            "",
            f"a thousand calls: {what} by the domain",
            bound,
            HELPED,
            OURS,
        )
        for what, bound in (("marking", 0.02), ("sweeping", 0.1))
    ),
    *(
        Target(f"helper: {metric}", "helper", case, metric, bound, rival, base)
        for case, metric, bound, rival, base in (
            ("a graph of 300,000 nodes", "wall", 0.8, HELPED, OURS),
            ("a hash table of 500,000 strings", "wall", 0.95, HELPED, OURS),
            ("a map of 1 M entries", "wall", 0.9, HELPED, OURS),
            ("a window of 1 M references", "wall", 0.85, HELPED, OURS),
            ("lists of 1 M numbers", "wall", 0.72, HELPED, OURS),
            ("a graph of 300,000 nodes", "longest step", 0.33, HELPED, BASE),
            ("a graph of 300,000 nodes", "99.99 % of the steps", 0.33, HELPED, BASE),
            ("a hash table of 500,000 strings", "longest step", 0.33, HELPED, BASE),
            ("a hash table of 500,000 strings", "99.99 % of the steps", 0.33, HELPED, BASE),
            ("a heap of 1 GB", "Gc.major", 0.6, HELPED, OURS),
            ("a heap of 1 GB", "Gc.full_major", 0.6, HELPED, OURS),
            ("", "peak resident", 1.0, HELPED, OURS),
            ("", "processor time", 1.05, HELPED, OURS),
            ("two domains, a table each", "wall", 1.02, HELPED, OURS),
            *(
                (case, metric, bound, HELPED_60, OURS)
                for case in ("a map of 1 M entries", "a window of 1 M references")
                for metric, bound in (("peak resident", 0.7), ("wall", 0.95))
            ),
            ("a map of 1 M entries", "wall", 1.0, HELPED_SMALL, OURS),
            ("a map of 1 M entries", "peak resident", 0.7, HELPED_SMALL, OURS),
            *(
                (f"busy: {case}", metric, bound, HELPED, OURS)
                for case in ("a graph of 300,000 nodes", "a hash table of 500,000 strings", "a map of 1 M entries")
                for metric, bound in (("wall", 1.03), ("longest step", 1.0))
            ),
        )
    ),
    Target("hash-consing, time", "hashcons", "", "processor time", 0.8, CELLS),
    Target("hash-consing, equal hashes", "crowded", "", "processor time", 1.0, CELLS),
    Target("hash-consing, resident", "hashcons", "", "peak resident", 0.7, CELLS),
    Target("arrays that come and go, time", "turnover", "", "time per array", 1.0),
    Target("arrays that come and go, resident", "turnover", "", "resident", 1.05),
    Target("large blocks, a tenth survives", "survivors", "", "resident: after a full major", 1.1),
    Target("large blocks, a tenth survives, small pages", "survivors", "", "resident: after a full major", 1.1, TABLE),
    # Below this times each of the fixed sizes: below this times the best.
    *(
        Target(f"adaptive minor heaps, beside {size}", workload, "", "processor time", 1.05, ADAPTIVE, size)
        for workload in ("redblack", "ocamlopt, minor heaps", "coq, minor heaps")
        for size in FIXED
    ),
    *(
        Target(f"adaptive minor heaps, beside {size}", "young", "", metric, bound, ADAPTIVE, size)
        for metric, bound in (("time", 1.05), ("peak resident", 1.5))
        for size in YOUNG_SIZES
    ),
    *(
        Target(f"memory follows: {metric}", workload, case, metric, bound, OURS, base)
        for workload, case, metric, bound, base in (
            ("follow", "all dropped", "resident: later", 0.2, BASE),  # 25 MB
            ("follow", "2 % survive", "resident: later", 0.25, BASE),  # 30 MB
            ("follow", "20 phases", "resident: 5 s later", 0.2, BASE),
            ("follow", "built, dropped", "processor time", 1.03, BY_CALLS),
            ("ocamlopt", "66,000 lines", "processor time", 1.01, BY_CALLS),
            ("coq", "", "processor time", 1.01, BY_CALLS),
        )
    ),
    Target("a floor", "ocamlopt with a floor", "", "processor time", 0.85, FLOOR),
    Target("mappings", "compaction", "", "mappings: compacted", 0.01),
    Target("resident memory", "compaction", "", "resident: compacted", 1.05),
    Target("resident memory, all freed", "compaction", "", "resident: all freed, compacted", 1.05),
]


def check(results: Results, version: str) -> list[Verdict]:
    """Every target that this run has measured."""
    return [
        Verdict(f"{t.name} ({t.workload} {case})", ratio.value, t.bound, low=ratio.low, high=ratio.high)
        for t in TARGETS
        if version.startswith(t.versions)
        for case in results.cases(t.workload)
        if case.startswith(t.case)
        if (ratio := results.ratio(t.workload, case, t.metric, t.rival, t.base)) is not None
    ]


def unmeasured(results: Results, version: str) -> list[str]:
    measured = [v.name for v in check(results, version)]
    wanted = dict.fromkeys(f"{t.name} ({t.workload} {t.case}" for t in TARGETS if version.startswith(t.versions))
    return [name.strip() + ")" for name in wanted if not any(m.startswith(name) for m in measured)]
