# SPDX-License-Identifier: MIT
"""The report: Markdown, raw figures, and resident memory over time."""
from __future__ import annotations

import csv
from pathlib import Path

from runner import report as common
from runner.measure import Results

from .rivals import BASE, RIVALS
from .suite import WORKLOADS

CAVEATS = """\
* A ratio compares two runtimes within one round and is the median over the rounds; ± is half the range over the median. On a shared machine,
  differences of a few percent between single runs mean nothing, in either direction.
* All programs of a row are the same objects linked with different runtimes. Where code comes to lie in memory differs nevertheless, and can by
  itself make a difference of a few percent in either direction.
* The heap of `marking` is made by C code straight in the major heap, so that all runtimes get the same requests in the same order. A random heap is
  the worst case for caches and TLB, a sequential one the best; programs lie between.
* "major GC" is one cycle of marking and sweeping, of which marking is the larger part. "best" and "median" are those of the collections in one process.
* "Processor time" is that of all threads, in user mode and in the kernel. `ocamlopt` runs without the assembler, which is another program.
* Where the kernel's mode of transparent huge pages is "always", `stock` has them as well.
* "resident" is what the kernel tells in /proc/self/statm; "over time" is looked at every 10 ms.
"""


def tables(results: Results) -> list:
    return list(common.tables(results, WORKLOADS, tuple(RIVALS), BASE))


def markdown(results: Results, facts: dict[str, str], target_lines: list[str], plots: list[str], notices: list[str]) -> str:
    rounds = 1 + max((f.round for f in results.figures), default=0)
    out = [f"# Outheap: benchmark report, OCaml {facts['OCaml'].split(' ')[0].rstrip(',')}", ""]
    out += common.markdown_table(["", ""], [[k, v] for k, v in {**facts, "rounds": str(rounds)}.items()]) + [""]
    out += [f"A cell holds the median, its spread over the rounds, and the ratio to `{BASE}` in the same round (below 1: better).", ""]
    if notices:
        out += ["## Left out, or failed", "", *(f"* {n}" for n in notices), ""]
    out += ["## Targets", "", "```", *target_lines, "```", ""]
    for plot in plots:
        out += [f"![{plot}]({plot})", ""]
    out += common.markdown_workloads(tables(results))
    used = dict.fromkeys(f.implementation for f in results.figures)
    return "\n".join([*out, "## Runtimes", "", *(f"* `{r}`: {RIVALS[r].note}" for r in RIVALS if r in used), "", "## Caveats", "", CAVEATS])


def write_series(path: Path, series: dict[str, list[tuple[float, float]]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["runtime", "seconds", "resident MB"])
        writer.writerows([rival, f"{s:.3f}", f"{mb:.1f}"] for rival, samples in series.items() for s, mb in samples)
