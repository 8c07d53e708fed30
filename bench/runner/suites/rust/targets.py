# SPDX-License-Identifier: MIT
"""The figures to reach in the same run: beside C, which a safe layer must not cost more than, and beside the other
crates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean

from ...results import Results
from ...verdicts import Verdict
from .tables import BASE, BUILDS, CLIENTS, INTEROP, OCAML, OURS


@dataclass(frozen=True)
class Target:
    """OURS <= bound × base, for every metric that begins or ends with `metric`; with `mean`, for their geometric mean.
    With a unit: OURS <= bound."""

    name: str
    workload: str
    metric: str
    bound: float
    base: str = BASE
    mean: bool = False
    unit: str = ""

    def fits(self, metric: str) -> bool:
        return metric.startswith(self.metric) or metric.endswith(self.metric)


GUARDED = 1.1  # a panic becomes an exception
TARGETS = [
    Target("local_roots, geometric mean", "local_roots", "N=", 1.05, mean=True),
    Target("local_roots", "local_roots", "N=1", 1.1),
    Target("perm_count", "perm_count", "time", 1.05),
    Target("call", "calls", "no access", 1.05),
    Target("call", "calls", "read, ", GUARDED),
    Target("call", "calls", "read-write, ", GUARDED),
    Target("call", "calls", "closure called", 1.05),
    Target("lock", "calls", "lock released", 1.1),
    Target("lock", "calls", "attached", 1.1),
    *(
        target
        for rival in (INTEROP, OCAML)
        for target in (
            Target(f"local_roots, beside {rival}", "local_roots", "N=", 1.0, rival),
            Target(f"perm_count, beside {rival}", "perm_count", "time", 1.0, rival),
            Target(f"conversion, beside {rival}", "conversion", "from OCaml", 1.0, rival),
            Target(f"conversion, beside {rival}", "conversion", "to OCaml", 0.5, rival),
            Target(f"clean build, beside {rival}", BUILDS, "time", 1.0, rival),
        )
    ),
    Target("crates in a default build", BUILDS, "crates", 10, unit="crates"),
    Target(f"check of a large client, beside {INTEROP}", CLIENTS, "time", 1.2, INTEROP),
]


def exact(target: Target, metric: str) -> bool:
    """`N=1` is not `N=10`, nor `time` `processor time`."""
    return metric == target.metric or target.metric.endswith(("=", ", ", "OCaml", "access"))


def verdicts_of(target: Target, results: Results) -> Iterator[Verdict]:
    for case in results.cases(target.workload):
        metrics = [m for m in results.metrics(target.workload, case) if target.fits(m) and exact(target, m)]
        ratios = {m: results.ratio(target.workload, case, m, OURS, target.base) for m in metrics}
        label = f" ({case})" if case else ""
        if target.unit:
            for metric in metrics:
                if (figure := results.median(target.workload, case, metric, OURS)) is not None:
                    yield Verdict(target.name + label, figure, target.bound, target.unit)
        elif target.mean:
            values = [r.value for r in ratios.values() if r]
            if values:
                yield Verdict(target.name + label, geometric_mean(values), target.bound)
        else:
            for metric, ratio in ratios.items():
                if ratio:
                    name = f"{target.name}: {metric}{label}"
                    yield Verdict(name, ratio.value, target.bound, low=ratio.low, high=ratio.high)


def wanted(version: str) -> list[Target]:
    """`ocaml-interop` is for OCaml 5."""
    return [t for t in TARGETS if version.startswith("5.") or t.base != INTEROP]


def check(results: Results, version: str) -> list[Verdict]:
    return [verdict for target in wanted(version) for verdict in verdicts_of(target, results)]


def unmeasured(results: Results, version: str) -> list[str]:
    return [f"{t.name}: {t.metric.rstrip('=, ')}" for t in wanted(version) if not any(verdicts_of(t, results))]
