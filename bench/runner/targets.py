# SPDX-License-Identifier: MIT
"""The figures to reach against 0.4.0 in the same run."""
from __future__ import annotations

from dataclasses import dataclass

from .measure import Results
from .suite import OURS, RIVAL


@dataclass(frozen=True)
class Target:
    """OURS <= bound × base for a metric, in every case whose label contains `case`."""
    name: str
    workload: str
    metric: str
    bound: float
    case: str = ""
    base: str = RIVAL
    old_bound: float | None = 1.0  # with OCaml 4.14; None: no target there


TARGETS = [
    Target("create+delete", "pair", "create+delete, geometric mean", 0.8),
    Target("instructions of create", "instructions", "create", 0.999),
    Target("instructions of delete", "instructions", "delete", 0.999),
    Target("perm_count", "perm_count", "time", 0.85),
    Target("synthetic", "synthetic", "time", 1.0),
    Target("root work in synthetic", "root_share", "root work, own", 0.5),
    Target("globroots", "globroots", "time", 0.85),
    Target("local_roots, N = 1000", "local_roots", "N=1000", 0.9),
    Target("worst pause", "pause", "worst pause, processor time", 1 / 20, case="5 M, shuffled"),
    Target("worst pause", "pause", "worst pause, processor time", 1 / 20, case="20 M, shuffled"),
    Target("full major collection", "pause", "full major", 0.6, case="5 M, shuffled"),
    Target("full major collection", "pause", "full major", 0.6, case="20 M, shuffled"),
    Target("deletion without the lock", "remote", "delete, thread", 0.6),
    Target("deletion in a blocking section", "remote", "delete, blocking-section", 0.6),
    Target("deletion by another domain", "remote", "delete, domain", 0.8, old_bound=None),
    Target("deletion by two domains at once", "remote", "delete, two-domains", 0.8, old_bound=None),
    Target("memory per live root", "pause", "memory per root", 1.0, case="shuffled"),
    Target("peak heap", "pause", "peak heap", 1.3, case="shuffled"),
    Target("peak heap, against a list", "pause", "peak heap", 1.0, case="shuffled", base="ocaml_list"),
    Target("index", "index", "per word", 1.0),
]

# The worst pause must not grow with the number of roots.
PAUSE_GROWTH = ("worst pause with 20 M roots, against 5 M", "20 M, shuffled", "5 M, shuffled", 1.5)


def check(results: Results, ocaml5: bool) -> list[tuple[str, float, float, float | None]]:
    """(name, ratio, bound, spread of ours) of every target that this run has measured."""
    verdicts = []
    for t in TARGETS:
        bound = t.bound if ocaml5 else t.old_bound
        if bound is None:
            continue
        for case in results.cases(t.workload):
            if t.case != case and not (t.case == "shuffled" and t.case in case) and t.case:
                continue
            ratio = results.ratio(t.workload, case, t.metric, OURS, t.base)
            if ratio is not None:
                verdicts.append((f"{t.name} ({case})" if case else t.name, ratio, bound, results.spread(t.workload, case, t.metric, OURS)))
    name, large, small, bound = PAUSE_GROWTH
    worst = [results.median("pause", case, "worst pause, processor time", OURS) for case in (large, small)]
    if ocaml5 and all(worst):
        verdicts.append((name, worst[0] / worst[1], bound, None))
    return verdicts


def unmeasured(results: Results, ocaml5: bool) -> list[str]:
    measured = [name for name, *_ in check(results, ocaml5)]
    names = {t.name for t in TARGETS if ocaml5 or t.old_bound is not None} | ({PAUSE_GROWTH[0]} if ocaml5 else set())
    return sorted(n for n in names if not any(m == n or m.startswith(n + " (") for m in measured))


def lines(results: Results, ocaml5: bool) -> list[str]:
    return formatted(check(results, ocaml5), unmeasured(results, ocaml5))


def formatted(verdicts: list[tuple[str, float, float, float | None]], missing: list[str]) -> list[str]:
    not_measured = ["not measured in this run: " + "; ".join(missing)] if missing else []
    if not verdicts:
        return not_measured
    width = max(len(v[0]) for v in verdicts)
    out = []
    for name, ratio, bound, spread in verdicts:
        verdict = "reached" if ratio <= bound else f"SHORT by {ratio / bound - 1:.1%}"
        out.append(f"{name:<{width}}  {ratio:6.3f}x  (at most {bound:.3f}x)  {verdict}" + (f"  ±{spread:.0%}" if spread else ""))
    short = sum(v[1] > v[2] for v in verdicts)
    return out + [f"{len(verdicts) - short} of {len(verdicts)} targets reached"] + not_measured
