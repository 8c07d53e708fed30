# SPDX-License-Identifier: MIT
"""Invented results."""

from pathlib import Path

from runner.results import Figure, RawFile, write_facts

FACTS = {
    "date": "today",
    "mode": "quick",
    "commit": "abc",
    "OCaml": "5.4.1, flags -g",
    "processor": "AMD EPYC",
    "cores": "2",
    "load before": "0.1",
    "C code, build users": "cc: cc -O2 -fPIC",
}


def figures(
    workload: str,
    metric: str,
    ours: list,
    theirs: list,
    case: str = "",
    names: tuple[str, str] = ("boxroot", "boxroot-0.4.0"),
    unit: str = "ns",
):
    return [
        Figure(r, workload, case, i, metric, v, unit)
        for i, values in zip(names, (ours, theirs))
        for r, v in enumerate(values)
    ]


def write_raw(path: Path, all_figures: list[Figure]) -> None:
    path.unlink(missing_ok=True)
    raw = RawFile(path)
    raw.append(all_figures)
    raw.close()


def write_run(
    root: Path, suite: str, all_figures: list, facts: dict, version: str = "5.4.1", name: str = "amd-epyc-2"
) -> Path:
    folder = root / "bench" / "results" / suite / version / name
    folder.mkdir(parents=True, exist_ok=True)
    write_raw(folder / "raw.csv", all_figures)
    write_facts(folder / "facts.json", {**FACTS, **facts})
    return folder
