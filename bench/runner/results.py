# SPDX-License-Identifier: MIT
"""Figures, and what is computed from them: medians, ratios, intervals. Their files: raw.csv, absent.csv, series.csv and
facts.json, in a folder while a run is measured, and in one archive when it is recorded."""

from __future__ import annotations

import csv
import io
import json
import lzma
import math
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median

from compare.intervals import WANTED, coverage, median_interval

from .model import Absence

EXACT = ("instructions", "calls")  # units of what repeats exactly: one round says all


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
    """Ours to the base's. `low`, `high`: the interval, which holds the true ratio with 95 % at least; None with too few
    rounds to say. `p`: how often equal programs would differ so much or more in the sign test; 1 where nothing was
    tested."""

    value: float
    low: float | None
    high: float | None
    rounds: int
    p: float = 1.0

    @property
    def sure(self) -> bool:
        """The interval does not contain 1. For one ratio; of many, see `beyond_doubt`."""
        return self.low is not None and self.high is not None and (self.low > 1 or self.high < 1)


def quotient(ours: float, theirs: float) -> float:
    """Memory can shrink: where the base is not positive, the sign of the figures decides. Tables show infinity as
    nothing."""
    return max(ours, 0.0) / theirs if theirs > 0 else 1.0 if ours <= theirs else math.inf


def sign_test(ratios: list[float]) -> float:
    """How often throws of a coin are as uneven as the signs of these, or more so. Ties say nothing."""
    below, above = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
    return min(1.0, 1 - coverage(below + above, min(below, above) + 1)) if below + above else 1.0


def exactly(ours: dict[int, float], theirs: dict[int, float]) -> Ratio:
    value = quotient(median(ours.values()), median(theirs.values()))
    return Ratio(value, value, value, min(len(ours), len(theirs)), 0.0 if value != 1 else 1.0)


def ratio_of(ours: dict[int, float], theirs: dict[int, float]) -> Ratio | None:
    """Of one run: the median of the rounds' ratios, so that what drifts on the machine cancels."""
    ratios = [quotient(ours[r], theirs[r]) for r in sorted(ours.keys() & theirs.keys())]
    if not ratios:
        return None
    between = median_interval(ratios)
    low, high = (between.low, between.high) if between.decides else (None, None)
    return Ratio(median(ratios), low, high, len(ratios), sign_test(ratios))


def ratio_of_runs(new: dict[int, float], old: dict[int, float]) -> Ratio | None:
    """Of two runs, whose rounds have nothing in common: both medians lie in intervals of 97.5 %, so their ratio lies
    between the quotients of the ends with 95 %."""
    if not new or not old:
        return None
    value, rounds = quotient(median(new.values()), median(old.values())), min(len(new), len(old))
    a, b = (median_interval(list(side.values()), (1 + WANTED) / 2) for side in (new, old))
    if min(a.coverage, b.coverage) < (1 + WANTED) / 2 or b.low <= 0:
        return Ratio(value, None, None, rounds)
    return Ratio(value, a.low / b.high, a.high / b.low, rounds)


def beyond_doubt(ratios: Sequence[Ratio]) -> list[bool]:
    """Which of the ratios on one page are not 1. One in twenty of equal pairs would be found different by its own
    interval; here one in twenty at most, in the mean, of those that are called different are not (Benjamini and
    Hochberg, 1995)."""
    ordered = sorted(r.p for r in ratios)
    bound = max((p for n, p in enumerate(ordered, 1) if p <= n / len(ordered) * (1 - WANTED)), default=-1.0)
    return [r.sure and r.p <= bound for r in ratios]


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

    @property
    def workloads(self) -> list[str]:
        return list(self._cases)

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
        both = self.of(workload, case, metric, implementation), self.of(workload, case, metric, base)
        exact = self.units.get((workload, case, metric)) in EXACT and all(both)
        return exactly(*both) if exact else ratio_of(*both)


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
