# SPDX-License-Identifier: MIT
"""Draws raw figures: for each workload the ratio of every implementation to 0.4.0. Run by a Python that has matplotlib:
plot.py RAW_CSV OUTPUT_SVG TITLE"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from runner.report import read_raw  # noqa: E402
from runner.suite import IMPLEMENTATIONS, RIVAL  # noqa: E402

# (workload, metric): one row of the plot for each case
DRAWN = [("pair", "create+delete, geometric mean"), ("pair", "modify, geometric mean"), ("local_roots", "N=1000"), ("perm_count", "time"),
         ("ephemeral", "time"), ("parallel", "time"), ("synthetic", "time"), ("globroots", "time"), ("index", "per word"), ("remote", "delete, thread"),
         ("remote", "delete, domain"), ("old_roots", "delete, old roots while marking, in a row"), ("old_roots", "delete, old roots while marking, shuffled"),
         ("churn", "delete and create"), ("churn", "modify"), ("pinned", "time"), ("flood", "minor collection"), ("crowd", "pass on"),
         ("pause", "worst pause, processor time"), ("pause", "99.9th percentile pause, processor time"), ("pause", "full major"), ("pause", "peak heap"),
         ("pacing", "peak heap"), ("pacing", "time"), ("release", "resident: compacted once")]


def main(raw: str, output: str, title: str) -> None:
    results = read_raw(Path(raw))
    rows = [(f"{w}: {m}{' (' + c + ')' if c else ''}", {i: results.ratio(w, c, m, i) for i in results.implementations(w, c)})
            for w, m in DRAWN for c in results.cases(w)]
    rows = [(label, ratios) for label, ratios in rows if any(v and i != RIVAL for i, v in ratios.items())]
    used = [i for i in IMPLEMENTATIONS if any(r.get(i) for _, r in rows)]
    figure, axes = plt.subplots(figsize=(10, 1 + 0.4 * len(rows)))
    markers, colours = "osD^v<>phXPd*", plt.get_cmap("tab20").colors
    for n, implementation in enumerate(used):
        points = [(r[implementation], y) for y, (_, r) in enumerate(rows) if r.get(implementation)]
        axes.scatter(*zip(*points), label=implementation, marker=markers[n % len(markers)], color=colours[n % len(colours)], s=45)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xlabel("ratio to 0.4.0 in the same run (left is better)")
    axes.set_title(title)
    axes.legend(fontsize="small", bbox_to_anchor=(1.01, 1), loc="upper left")
    figure.savefig(output, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
