# SPDX-License-Identifier: MIT
"""The figures to reach against 0.4.0 in the same run."""
from __future__ import annotations

from dataclasses import dataclass

from .measure import Results
from .suite import OURS, RIVAL


@dataclass(frozen=True)
class Target:
    """OURS <= bound × base for a metric, in every case whose label begins with `case`; or, with a unit, OURS <= bound."""
    name: str
    workload: str
    metric: str
    bound: float
    case: str = ""
    base: str = RIVAL
    old_bound: float | None = 1.0  # with OCaml 4.14; None: no target there
    unit: str = ""


BATCHES = (1, 10, 100, 1000)
DEPTHS = (1, 2, 5, 10, 100, 1000)
TARGETS = [
    # The fast paths, in every build.
    Target("create+delete", "pair", "create+delete, geometric mean", 0.75, old_bound=0.9),
    *(Target(f"create+delete, batch {n}", "pair", f"create+delete, batch {n}", 1.0) for n in BATCHES),
    Target("modify", "pair", "modify, geometric mean", 0.9),
    Target("instructions of create", "instructions", "create", 0.999),
    Target("instructions of delete", "instructions", "delete", 0.999),
    *(Target(f"local_roots, N = {n}", "local_roots", f"N={n}", 0.95) for n in DEPTHS),
    # The authors' programs.
    Target("perm_count", "perm_count", "time", 0.7),
    Target("ephemeral", "ephemeral", "time", 0.7),
    Target("parallel", "parallel", "time", 0.7, old_bound=None),
    Target("synthetic", "synthetic", "time", 1.0),
    Target("root work in synthetic", "root_share", "root work, own", 0.5),
    Target("globroots", "globroots", "time", 1.0),
    # No cliff.
    *(Target(f"{what}{when} after a flood", "flood", what + when, bound, old_bound=bound, unit=unit)
      for when in ("", ", while marking")
      for what, bound, unit in (("minor collection", 1.0, "ms"), ("next creation", 100.0, "us"),
                                ("worst creation before any collection", 100.0, "us"))),
    Target("replacing old roots", "churn", "delete and create", 1.0),
    Target("modifying old roots", "churn", "modify", 1.0),
    Target("deletion of old roots while marking, in a row", "old_roots", "delete, old roots while marking, in a row", 1.3, old_bound=1.3),
    Target("deletion of old roots while marking, shuffled", "old_roots", "delete, old roots while marking, shuffled", 1.3, old_bound=1.3),
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
    Target("memory, three full majors after domains ended", "release", "resident: after three full majors", 1.5, case="500 domains", old_bound=None),
    # OCaml's GC by itself goes up to 1.1 (space_overhead 40) to 1.9 times (240) this far.
    Target("heap beside roots", "pacing", "peak heap, of what space_overhead promises", 2.0, old_bound=None, unit="of the promise"),
    Target("time beside roots", "pacing", "time", 1.0),
    Target("99.9th percentile pause beside roots", "pacing", "99.9th percentile pause, processor time", 1.2),
    Target("pinned pools: time", "pinned", "time", 1.1, old_bound=1.1),
    Target("pinned pools: worst step", "pinned", "worst step, processor time", 1.1, old_bound=1.1),
    # Deletion from elsewhere.
    Target("deletion without the lock", "remote", "delete, thread", 0.6),
    Target("deletion in a blocking section", "remote", "delete, blocking-section", 0.6),
    Target("deletion by another domain", "remote", "delete, domain", 0.8, old_bound=None),
    Target("deletion by two domains at once", "remote", "delete, two-domains", 0.8, old_bound=None),
    Target("creation after deletion by a thread", "remote", "create again, after thread", 1.1, old_bound=1.1),
    Target("index", "index", "per word", 1.0),
]

# The worst pause must not grow with the number of roots.
PAUSE_GROWTH = ("worst pause with 20 M roots, against 5 M", "20 M, shuffled", "5 M, shuffled", 1.5)


Verdict = tuple[str, float, float, "float | None", str]  # name, figure, bound, spread, unit


def check(results: Results, ocaml5: bool) -> list[Verdict]:
    """Every target that this run has measured. The figure is a ratio, or one of ours, when there is a unit."""
    verdicts = []
    for t in TARGETS:
        bound = t.bound if ocaml5 else t.old_bound
        if bound is None:
            continue
        for case in results.cases(t.workload):
            figure = (results.median(t.workload, case, t.metric, OURS) if t.unit
                      else results.ratio(t.workload, case, t.metric, OURS, t.base))
            if case.startswith(t.case) and figure is not None:
                spread = results.spread(t.workload, case, t.metric, OURS)
                verdicts.append((f"{t.name} ({case})" if case else t.name, figure, bound, spread, t.unit or "x"))
    name, large, small, bound = PAUSE_GROWTH
    worst = [results.median("pause", case, "worst pause, processor time", OURS) for case in (large, small)]
    if ocaml5 and all(worst):
        verdicts.append((name, worst[0] / worst[1], bound, None, "x"))
    return verdicts


def unmeasured(results: Results, ocaml5: bool) -> list[str]:
    measured = [name for name, *_ in check(results, ocaml5)]
    names = {t.name for t in TARGETS if ocaml5 or t.old_bound is not None} | ({PAUSE_GROWTH[0]} if ocaml5 else set())
    return sorted(n for n in names if not any(m == n or m.startswith(n + " (") for m in measured))


def lines(results: Results, ocaml5: bool) -> list[str]:
    return formatted(check(results, ocaml5), unmeasured(results, ocaml5))


def formatted(verdicts: list, missing: list[str]) -> list[str]:
    """Of verdicts; the unit can be left out where it is a ratio."""
    not_measured = ["not measured in this run: " + "; ".join(missing)] if missing else []
    if not verdicts:
        return not_measured
    width = max(len(v[0]) for v in verdicts)
    out = []
    for name, figure, bound, spread, *unit in verdicts:
        verdict = "reached" if figure <= bound else f"SHORT by {figure / bound - 1:.1%}"
        unit = "x" if unit in ([], ["x"]) else " " + unit[0]
        out.append(f"{name:<{width}}  {figure:6.3f}{unit}  (at most {bound:.3f}{unit})  {verdict}" + (f"  ±{spread:.0%}" if spread else ""))
    short = sum(v[1] > v[2] for v in verdicts)
    return out + [f"{len(verdicts) - short} of {len(verdicts)} targets reached"] + not_measured
