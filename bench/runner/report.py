# SPDX-License-Identifier: MIT
"""Tables for the terminal, and the report: Markdown and the raw figures."""
from __future__ import annotations

import csv
import json
from pathlib import Path

from .measure import Figure, Results
from .suite import IMPLEMENTATIONS, RIVAL, WORKLOADS

CAVEATS = """\
* A ratio compares two implementations within one round and is the median over the rounds; ± is half the range over the median.
  On a shared machine, differences of a few percent between single runs mean nothing, in either direction.
* "Processor time" is that of the process (of the thread, for pauses): it leaves out what other programs do, not what they do to caches.
* `gc`, `ocaml`, `ocaml_ref`, `ocaml_list` and `ocaml_array` hold values where the GC finds them by itself. Foreign code has no such choice; they
  are there as baselines. `malloc` keeps nothing alive. `dll` and `thread_unsafe` work on one thread only.
* Each library is compiled as it ships (this one as a single unit, 0.4.0 as three), with the same compiler and flags: those that OCaml reports for C
  code. A table whose title names another build (`-O2`, `clang`) has all its columns compiled so.
* `floor` is what a create and a delete cost that touch nothing but a free list: it keeps nothing alive.
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


MOST_CASES = 6  # of one workload with a table each; more are rows of one table for each metric


def tables(results: Results, workloads: dict = WORKLOADS, order: tuple = tuple(IMPLEMENTATIONS), base: str = RIVAL):
    """(workload, case or metric, header row, rows) for everything measured."""
    for name, workload in workloads.items():
        cases = results.cases(name)
        if not cases:
            continue
        metrics = {case: [m for m in results.metrics(name, case) if workload.shown(m)] for case in cases}

        def titled(case: str, metric: str) -> str:
            return metric + (f" ({unit})" if (unit := results.units[name, case, metric]) else "")

        def row(case: str, metric: str, implementations: list[str]) -> list[str]:
            return [cell(results, name, case, metric, i, base) for i in implementations]

        if len(cases) <= MOST_CASES:
            for case in cases:
                used = sorted(results.implementations(name, case), key=order.index)
                yield workload, case, ["", *used], [[titled(case, m), *row(case, m, used)] for m in metrics[case]]
            continue
        used = sorted({i for c in cases for i in results.implementations(name, c)}, key=order.index)
        for metric in dict.fromkeys(m for c in cases for m in metrics[c]):
            having = [c for c in cases if metric in metrics[c]]
            yield workload, titled(having[0], metric), ["", *used], [[c, *row(c, metric, used)] for c in having]


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


def markdown(results: Results, facts: dict[str, str], title: str, target_lines: list[str], plots: list[str], failures: list[str]) -> str:
    out = ["# Benchmark report", "", *markdown_table(["", ""], [[k, v] for k, v in facts.items()]), ""]
    out += ["A cell holds the median, its spread over the rounds, and the ratio to `boxroot-0.4.0` (below 1: better).", ""]
    if failures:
        out += ["## Failures", "", *(f"* {f}" for f in failures), ""]
    out += [f"## {title}", "", "```", *target_lines, "```", ""]
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


def write_facts(path: Path, facts: dict[str, str]) -> None:
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def read_facts(path: Path) -> dict[str, str]:
    return json.loads(path.read_text())
