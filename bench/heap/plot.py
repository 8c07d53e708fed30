# SPDX-License-Identifier: MIT
"""Draws raw figures: ratios to the stock runtime, and resident memory over time. Run by a Python that has matplotlib:
plot.py FOLDER TITLE   (FOLDER holds raw.csv and resident.csv, and gets ratios.svg and resident.svg)"""
import csv
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from heap.rivals import BASE, RIVALS  # noqa: E402
from runner.report import read_raw  # noqa: E402

DRAWN = [("marking", "major GC, median"), ("ocamlopt", "processor time"), ("coq", "processor time"), ("ocamlopt", "peak resident"), ("coq", "peak resident"),
         ("compaction", "time: compacted"), ("compaction", "resident: compacted"), ("compaction", "resident: all freed, compacted")]
COLOURS = dict(zip(RIVALS, plt.get_cmap("tab10").colors))


def ratios(folder: Path, title: str) -> None:
    results = read_raw(folder / "raw.csv")
    rows = [(f"{w}{' ' + c if c else ''}: {m}", {i: results.ratio(w, c, m, i, BASE) for i in results.implementations(w, c)})
            for w, m in DRAWN for c in results.cases(w)]
    rows = [(label, r) for label, r in rows if any(v and i != BASE for i, v in r.items())]
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(10, 1 + 0.4 * len(rows)))
    for rival, marker in zip(RIVALS, "osD^v<>phX"):
        points = [(r[rival], y) for y, (_, r) in enumerate(rows) if r.get(rival)]
        if points:
            axes.scatter(*zip(*points), label=rival, marker=marker, color=COLOURS[rival], s=45)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xlabel("ratio to the stock runtime in the same run (left is better)")
    axes.set_title(title)
    axes.legend(fontsize="small", bbox_to_anchor=(1.01, 1), loc="upper left")
    figure.savefig(folder / "ratios.svg", bbox_inches="tight")


def resident(folder: Path, title: str) -> None:
    series = defaultdict(list)
    with (folder / "resident.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            series[row["runtime"]].append((float(row["seconds"]), float(row["resident MB"])))
    if not series:
        return
    figure, axes = plt.subplots(figsize=(10, 4))
    for rival, points in series.items():
        axes.plot(*zip(*points), label=rival, color=COLOURS[rival], linewidth=1)
    axes.set_xlabel("seconds")
    axes.set_ylabel("resident memory (MB)")
    axes.set_ylim(bottom=0)
    axes.set_title(f"compaction, {title}")
    axes.legend(fontsize="small")
    figure.savefig(folder / "resident.svg", bbox_inches="tight")


if __name__ == "__main__":
    ratios(Path(sys.argv[1]), sys.argv[2])
    resident(Path(sys.argv[1]), sys.argv[2])
