# SPDX-License-Identifier: MIT
"""Compares two sets of results, row by row: two folders, or what two git commits have in bench/results/."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

from .compiler import ROOT
from .model import Suite
from .results import BadFolder, Run, folder_of, ratio_of_runs, read_run, run_paths
from .suites import SUITES
from .text import interval, number, times

COLUMNS = ["", "old", "new", "new/old", "95 %", "rounds", "beside the base: old", "new"]


def runs_in(folder: Path) -> dict[tuple, Run]:
    """By (suite, version, name); of a folder that is itself one run, that one alone."""
    found = run_paths(folder)
    return {("",) if p == folder else folder_of(p).parts[-3:]: read_run(p) for p in found}


def open_side(where: str, temporary: Path) -> dict[tuple, Run]:
    if Path(where).exists():
        runs = runs_in(Path(where))
    else:
        done = subprocess.run(["git", "archive", where, "bench/results"], cwd=ROOT, capture_output=True)
        if done.returncode != 0:
            raise BadFolder(
                f"{where} is neither a folder nor a commit with bench/results: "
                f"{done.stderr.decode(errors='replace').strip()}"
            )
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(temporary, filter="data")
        runs = runs_in(temporary / "bench" / "results")
    if not runs:
        raise BadFolder(f"{where} has no results")
    return runs


def suite_of(run: Run) -> Suite:
    """That of its folder, or by what was measured."""
    if named := [SUITES[part] for part in folder_of(run.path).parts[-3:-2] if part in SUITES]:
        return named[0]
    used = {f.implementation for f in run.results.figures}
    return next((s for s in SUITES.values() if s.ours in used or s.base in used), SUITES["boxroot"])


def table(old: Run, new: Run, suite: Suite) -> list[list[str]]:
    """What both have of ours, the largest change for the worse first."""
    out = []
    for workload in suite.workloads.values():
        for case in new.results.cases(workload.name):
            for metric in (m for m in new.results.metrics(workload.name, case) if workload.compared(m)):
                key = workload.name, case, metric
                mine = suite.ours_of(workload.name)
                ratio = ratio_of_runs(new.results.of(*key, mine), old.results.of(*key, mine))
                if ratio is None:
                    continue
                beside = [run.results.ratio(*key, mine, suite.base_of(workload.name)) for run in (old, new)]
                out.append(
                    (
                        ratio.value,
                        [
                            f"{workload.name}{' (' + case + ')' if case else ''}: {metric}",
                            *(number(run.results.median(*key, mine) or 0.0) for run in (old, new)),
                            times(ratio.value) + ("  *" if ratio.sure else ""),
                            interval(ratio),
                            str(ratio.rounds),
                            *(times(r.value) if r else "" for r in beside),
                        ],
                    )
                )
    return [cells for _, cells in sorted(out, key=lambda item: -item[0])]


def show(rows: list[list[str]]) -> str:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:]))]).rstrip() for r in rows
    )


def command(old: str, new: str) -> int:
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        before, after = open_side(old, Path(a)), open_side(new, Path(b))
    common = [k for k in after if k in before] if len(before) > 1 or len(after) > 1 else []
    pairs = [(before[k], after[k]) for k in common] or (
        [(*before.values(), *after.values())] if len(before) == len(after) == 1 else []
    )
    if not pairs:
        raise BadFolder(f"{old} and {new} have no run of the same suite, version and machine")
    for one, other in pairs:
        suite = suite_of(other)
        print(
            f"{suite.title}: OCaml {one.version} at {one.facts['commit']} ({one.facts['date']}), "
            f"{other.version} at {other.facts['commit']} ({other.facts['date']}). * beyond doubt. "
            "Runs of different days or machines: only the last two columns compare."
        )
        print(show([COLUMNS, *table(one, other, suite)]) + "\n")
    return 0
