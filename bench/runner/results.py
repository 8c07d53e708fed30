# SPDX-License-Identifier: MIT
"""Figures, and what is computed from them: medians, ratios, intervals. Their files: raw.csv, absent.csv, series.csv and
facts.json, in a folder while a run is measured, and in one archive when it is recorded."""

from __future__ import annotations

import csv
import io
import json
import lzma
import shutil
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from .model import Absence

RESAMPLES, CONFIDENCE = 2000, 95


@dataclass(frozen=True)
class Figure:
    round: int
    workload: str
    case: str
    implementation: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class Ratio:
    """Of the medians over the rounds. `low`, `high`: its bootstrap interval, where both sides have two rounds or
    more."""

    value: float
    low: float | None
    high: float | None
    rounds: int

    @property
    def sure(self) -> bool:
        """The interval does not contain 1."""
        return self.low is not None and self.high is not None and (self.low > 1 or self.high < 1)


@cache
def bootstrap(ours: tuple[float, ...], theirs: tuple[float, ...]) -> tuple[float, float] | None:
    """The interval of the ratio of medians when rounds are drawn again, the same ones for both sides when they are as
    many. The seed comes from the data: the same data give the same interval."""
    if min(len(ours), len(theirs)) < 2:
        return None
    draw = np.random.default_rng(zlib.crc32(repr((ours, theirs)).encode()))
    a, b = np.array(ours), np.array(theirs)
    i = draw.integers(len(a), size=(RESAMPLES, len(a)))
    j = i if len(a) == len(b) else draw.integers(len(b), size=(RESAMPLES, len(b)))
    below = np.median(b[j], axis=1)
    ratios = np.maximum(np.median(a[i], axis=1), 0.0)[below > 0] / below[below > 0]
    if not len(ratios):
        return None
    tail = (100 - CONFIDENCE) / 2
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return float(low), float(high)


def ratio_of(ours: dict[int, float], theirs: dict[int, float]) -> Ratio | None:
    """Memory can shrink: where the base is not positive, the sign of the figures decides."""
    if not ours or not theirs:
        return None
    a, b = median(ours.values()), median(theirs.values())
    value = max(a, 0.0) / b if b > 0 else 1.0 if a <= b else float("inf")
    common = sorted(ours.keys() & theirs.keys())
    pairs = common if len(common) > 1 else None
    x = tuple(ours[r] for r in pairs) if pairs else tuple(ours.values())
    y = tuple(theirs[r] for r in pairs) if pairs else tuple(theirs.values())
    interval = bootstrap(x, y) if b > 0 else None
    # Both sides over all their rounds make the ratio; the interval is that of the rounds they share, and contains it.
    low, high = (min(interval[0], value), max(interval[1], value)) if interval else (None, None)
    return Ratio(value, low, high, min(len(ours), len(theirs)))


class Results:
    """All figures of a run, by workload, case, metric and implementation."""

    def __init__(self, figures: Iterable[Figure] = (), absent: Iterable[Absence] = ()):
        self.figures: list[Figure] = []
        self.absent: list[Absence] = list(absent)
        self.values: dict[tuple, dict[int, float]] = defaultdict(dict)
        self.units: dict[tuple, str] = {}
        self._cases: dict[str, dict[str, None]] = defaultdict(dict)
        self._metrics: dict[tuple, dict[str, None]] = defaultdict(dict)
        self._implementations: dict[tuple, dict[str, None]] = defaultdict(dict)
        self.add(figures)

    def add(self, figures: Iterable[Figure]) -> None:
        for f in figures:
            self.figures.append(f)
            self.values[f.workload, f.case, f.metric, f.implementation][f.round] = f.value
            self.units[f.workload, f.case, f.metric] = f.unit
            self._cases[f.workload][f.case] = None
            self._metrics[f.workload, f.case][f.metric] = None
            self._implementations[f.workload, f.case][f.implementation] = None

    def cases(self, workload: str) -> list[str]:
        return list(self._cases.get(workload, ()))

    def metrics(self, workload: str, case: str) -> list[str]:
        return list(self._metrics.get((workload, case), ()))

    def implementations(self, workload: str, case: str) -> list[str]:
        return list(self._implementations.get((workload, case), ()))

    def of(self, workload: str, case: str, metric: str, implementation: str) -> dict[int, float]:
        return self.values.get((workload, case, metric, implementation), {})

    def rounds(self) -> int:
        return 1 + max((f.round for f in self.figures), default=-1)

    def median(self, workload: str, case: str, metric: str, implementation: str) -> float | None:
        values = self.of(workload, case, metric, implementation)
        return median(values.values()) if values else None

    def ratio(self, workload: str, case: str, metric: str, implementation: str, base: str) -> Ratio | None:
        return ratio_of(self.of(workload, case, metric, implementation), self.of(workload, case, metric, base))


FIELDS = [f.name for f in fields(Figure)]
ABSENT_FIELDS = [f.name for f in fields(Absence)]


class RawFile:
    """raw.csv, to which figures are appended as they come: what was measured survives an interruption."""

    def __init__(self, path: Path):
        whole = path.read_bytes() if path.exists() else b""
        if not whole.endswith(b"\n"):
            path.write_bytes(whole[: whole.rfind(b"\n") + 1])  # a line that an interruption cut off
        self.file = path.open("a", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        if not whole:
            self.writer.writerow(FIELDS)

    def append(self, figures: Iterable[Figure]) -> None:
        self.writer.writerows(astuple(f) for f in figures)
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def read_figures(lines: Iterable[str]) -> list[Figure]:
    return [
        Figure(
            int(r["round"]),
            r["workload"],
            r["case"],
            r["implementation"],
            r["metric"],
            float(r["value"]),
            r["unit"],
        )
        for r in csv.DictReader(lines)
    ]


def write_absent(path: Path, absent: Iterable[Absence]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ABSENT_FIELDS)
        writer.writerows(dict.fromkeys(astuple(a) for a in absent))


def read_absent(lines: Iterable[str]) -> list[Absence]:
    return [Absence(*(r[name] for name in ABSENT_FIELDS)) for r in csv.DictReader(lines)]


def write_facts(path: Path, facts: dict[str, str]) -> None:
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class Point:
    """Of series.csv: what a process looked like over time."""

    workload: str
    case: str
    implementation: str
    series: str
    x: float
    y: float


SERIES_FIELDS = [f.name for f in fields(Point)]


def read_series(lines: Iterable[str]) -> list[Point]:
    return [
        Point(*(r[name] for name in SERIES_FIELDS[:4]), float(r["x"]), float(r["y"])) for r in csv.DictReader(lines)
    ]


# --- runs -------------------------------------------------------------------------------------------------------------

NEEDED, FILES = ("raw.csv", "facts.json"), ("absent.csv", "facts.json", "raw.csv", "series.csv")
ARCHIVE = ".tar.xz"


class BadFolder(Exception):
    pass


@dataclass(frozen=True)
class Run:
    """A run, read. `path`: its folder or its archive."""

    path: Path
    results: Results
    facts: dict[str, str]
    series: tuple[Point, ...] = ()

    @property
    def version(self) -> str:
        return self.facts["OCaml"].split(",")[0].split(" ")[0]

    @property
    def name(self) -> str:
        """That of the machine, and of the part that was measured."""
        return folder_of(self.path).name


def folder_of(path: Path) -> Path:
    """Where a run is, or was before it was packed."""
    return path.with_name(path.name.removesuffix(ARCHIVE))


def archive_of(folder: Path) -> Path:
    return folder.with_name(folder.name + ARCHIVE)


def run_paths(above: Path) -> list[Path]:
    """The runs in a folder, or this one itself: folders with figures and archives. Where a run has both, the folder is
    the newer one."""
    if above.name.endswith(ARCHIVE) or (above / "raw.csv").exists():
        return [above]
    folders = {p.parent for p in above.rglob("raw.csv")}
    archives = {p for p in above.rglob("*" + ARCHIVE) if folder_of(p) not in folders}
    return sorted(folders | archives, key=folder_of)


def pack(folder: Path) -> Path:
    """Puts a run into an archive, which depends on nothing but its contents; the folder goes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in FILES:
            if (folder / name).exists():
                contents = (folder / name).read_bytes()
                about = tarfile.TarInfo(name)
                about.size = len(contents)
                archive.addfile(about, io.BytesIO(contents))
    packed = archive_of(folder)
    packed.write_bytes(lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    shutil.rmtree(folder)
    return packed


def files_of(path: Path) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    if path.is_dir():
        yield from ((name, (path / name).read_text()) for name in FILES if (path / name).exists())
        return
    with tarfile.open(path, "r:xz") as archive:
        for name in archive.getnames():
            if name in FILES and (file := archive.extractfile(name)):
                yield name, file.read().decode()


def read_run(path: Path) -> Run:
    try:
        files = dict(files_of(path))
        if missing := [name for name in NEEDED if name not in files]:
            raise BadFolder(f"{path} has no {' and no '.join(missing)}: measure again")
        table = {name: io.StringIO(files.get(name, ""), newline="") for name in FILES}
        results = Results(read_figures(table["raw.csv"]), read_absent(table["absent.csv"]))
        return Run(path, results, json.loads(files["facts.json"]), tuple(read_series(table["series.csv"])))
    except (ValueError, KeyError, OSError, EOFError, lzma.LZMAError, tarfile.TarError) as error:
        raise BadFolder(f"{path} cannot be read: {type(error).__name__}: {error}") from None
