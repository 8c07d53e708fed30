# SPDX-License-Identifier: MIT
"""Tables for the terminal, and the report: Markdown and the raw figures."""
from __future__ import annotations

import csv
from pathlib import Path

from .measure import Figure, Results
from .suite import IMPLEMENTATIONS, RIVAL, WORKLOADS

CAVEATS = """\
* A ratio compares two implementations within one round and is the median over the rounds; ± is half the range over the median.
  On a shared machine, differences of a few percent between single runs mean nothing, in either direction.
* "Processor time" is that of the process (of the thread, for pauses): it leaves out what other programs do, not what they do to caches.
* `gc`, `ocaml`, `ocaml_ref`, `ocaml_list` and `ocaml_array` hold values where the GC finds them by itself. Foreign code has no such choice; they
  are there as baselines. `malloc` keeps nothing alive. `dll` and `thread_unsafe` work on one thread only.
* Each library is compiled as it ships (this one as a single unit, 0.4.0 as three), with the same compiler and flags.
* "root work, own" counts the instructions of the library and its stubs. "with GC calls" adds what they call: promotion and, where the library
  hands roots to the collector one by one, marking, which for this library happens inside the collector's marker.
* Peak heap counts the OCaml heap; memory per root is the growth of the process while the roots are made, their array excepted.
"""


def number(x: float) -> str:
    if x == 0 or x >= 1e5:
        return f"{x:.0f}" if x < 1e6 else f"{x / 1e6:.1f}M"
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def cell(results: Results, workload: str, case: str, metric: str, implementation: str, base: str = RIVAL) -> str:
    middle = results.median(workload, case, metric, implementation)
    if middle is None:
        return ""
    spread = results.spread(workload, case, metric, implementation)
    ratio = results.ratio(workload, case, metric, implementation, base)
    return (number(middle) + (f" ±{spread:.0%}" if spread is not None else "")
            + (f" {ratio:.2f}x" if ratio is not None and implementation != base else ""))


def tables(results: Results, workloads: dict = WORKLOADS, order: tuple = tuple(IMPLEMENTATIONS), base: str = RIVAL):
    """(workload, case, header row, rows) for everything measured."""
    for name, workload in workloads.items():
        for case in results.cases(name):
            implementations = sorted(results.implementations(name, case), key=order.index)
            rows = []
            for metric in results.metrics(name, case):
                if metric.startswith("gc: ") or metric in workload.hidden:
                    continue
                unit = results.units[name, case, metric]
                rows.append([metric + (f" ({unit})" if unit else ""), *(cell(results, name, case, metric, i, base) for i in implementations)])
            yield workload, case, ["", *implementations], rows


def terminal(tables, width: int) -> str:
    out = []
    for workload, case, header, rows in tables:
        out.append(f"\n{workload.name}{', ' + case if case else ''}: {workload.note}")
        widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
        columns = list(range(1, len(header)))
        while columns:  # as many columns as fit, and the rest below
            block = [columns.pop(0)]
            while columns and widths[0] + sum(widths[c] + 2 for c in [*block, columns[0]]) <= width:
                block.append(columns.pop(0))
            out += ["  ".join([r[0].ljust(widths[0]), *(r[c].rjust(widths[c]) for c in block)]).rstrip() for r in [header, *rows]]
    return "\n".join(out)


def markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(r) + " |" for r in [header, ["---"] * len(header), *rows]]


def markdown_workloads(tables) -> list[str]:
    out = []
    for workload, case, header, rows in tables:
        out += [f"## {workload.name}{', ' + case if case else ''}", "", f"{workload.note[0].upper()}{workload.note[1:]}.", ""]
        out += markdown_table(header, rows) + [""]
    return out


def markdown(results: Results, facts: dict[str, str], target_lines: list[str], plots: list[str], failures: list[str]) -> str:
    rounds = 1 + max((f.round for f in results.figures), default=0)
    out = ["# Benchmark report", "", *markdown_table(["", ""], [[k, v] for k, v in {**facts, "rounds": str(rounds)}.items()]), ""]
    out += ["A cell holds the median, its spread over the rounds, and the ratio to `boxroot-0.4.0` (below 1: better).", ""]
    if failures:
        out += ["## Failures", "", *(f"* {f}" for f in failures), ""]
    out += ["## Targets", "", "```", *target_lines, "```", ""]
    out += markdown_workloads(tables(results))
    out += [f"![{p}]({p})" for p in plots] + ([""] if plots else [])
    used = dict.fromkeys(f.implementation for f in results.figures)
    out += ["## Implementations", "", *(f"* `{i}`: {IMPLEMENTATIONS[i].note}" for i in IMPLEMENTATIONS if i in used), "", "## Caveats", "", CAVEATS]
    return "\n".join(out)


FIELDS = ["round", "workload", "case", "implementation", "metric", "value", "unit"]


def write_raw(path: Path, results: Results) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows([getattr(f, name) for name in FIELDS] for f in results.figures)


def read_raw(path: Path) -> Results:
    with path.open(newline="") as file:
        return Results([Figure(int(r["round"]), r["workload"], r["case"], r["implementation"], r["metric"], float(r["value"]), r["unit"])
                        for r in csv.DictReader(file)])
