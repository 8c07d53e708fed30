# SPDX-License-Identifier: MIT
"""Bars, curves and the pictures of README.md, out of results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from itertools import chain

from .model import DISTRIBUTION, LANE, Suite, Workload
from .results import Ratio, Results, Run
from .rows import LOST, Row
from .text import interval, number, times

CLIP = 2.6  # a bar longer than so many times the longest of ours, the base's and the floor's is cut


@dataclass(frozen=True)
class Bar:
    name: str
    note: str
    kind: str  # ours, base, variant, floor, baseline, rival
    value: str
    ratio: str  # to the base
    width: float  # percent
    low: float | None  # of the rounds' range, percent
    high: float | None
    cut: bool
    best: bool
    rounds: int


@dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    bars: list[Bar]
    floor: float | None  # percent
    distance: str
    lost: bool


def kind_of(suite: Suite, workload: str, name: str) -> str:
    if name == suite.ours_of(workload):
        return "ours"
    if name == suite.base_of(workload):
        return "base"
    if name == suite.floors.get(workload):
        return "floor"
    return "variant" if name in suite.variants else "baseline" if name in suite.baselines else "rival"


def headline(results: Results, suite: Suite, workload: Workload, case: str) -> str | None:
    """The metric that stands for a workload."""
    base = suite.base_of(workload.name)
    having = [m for m in results.metrics(workload.name, case) if workload.shown(m)]
    wanted = [m for w, m in suite.headlines if w == workload.name and m in having]
    return next(
        chain(
            wanted,
            (m for m in having if workload.compared(m) and results.of(workload.name, case, m, base)),
            having,
        ),
        None,
    )


def panel(results: Results, suite: Suite, workload: Workload, case: str, metric: str) -> Panel | None:
    key, base = (workload.name, case, metric), suite.base_of(workload.name)
    mine = suite.ours_of(workload.name)
    medians = {i: m for i in suite.implementations if (m := results.median(*key, i)) is not None}
    if not medians or (len(medians) < 2 and mine not in medians and base not in medians) or max(medians.values()) <= 0:
        return None
    kinds = {i: kind_of(suite, workload.name, i) for i in medians}
    contestants = {i: m for i, m in medians.items() if kinds[i] in ("ours", "base", "rival")}
    ranked = sorted(contestants, key=lambda i: contestants[i])
    decided = [i for i in ranked if len(results.of(*key, i)) > 1]  # one round decides nothing
    winners: list[str] = []  # the best, and those after it that cannot be told from it
    for name in decided if len(decided) > 1 and decided[0] == ranked[0] else []:
        ratio = results.ratio(*key, name, winners[0]) if winners else None
        if ratio and ratio.value > 1 + SAME:
            one, best = results.of(*key, name), results.of(*key, winners[0])
            if ratio.low > 1 if ratio.low is not None else all(one[r] > best[r] for r in one.keys() & best.keys()):
                break
        winners.append(name)

    main = [m for i, m in medians.items() if kinds[i] in ("ours", "base", "floor")] or list(medians.values())
    most = max(medians.values())
    end = most if most <= CLIP * max(main) or max(main) <= 0 else CLIP * max(main)
    bars = []
    for name, value in sorted(medians.items(), key=lambda item: item[1]):
        rounds = list(results.of(*key, name).values())
        ratio = results.ratio(*key, name, base) if name != base else None
        ends = (min(rounds), max(rounds)) if len(rounds) > 1 else None
        bars.append(
            Bar(
                name,
                suite.implementations[name].note,
                kinds[name],
                number(value),
                times(ratio.value) + "×" if ratio else "",
                min(100.0, 100 * max(value, 0) / end),
                *(min(100.0, 100 * max(e, 0) / end) for e in ends) if ends else (None, None),
                value > end * 1.001,
                name in winners and workload.compared(metric),
                len(rounds),
            )
        )
    floor = medians.get(suite.floors.get(workload.name, ""))
    return Panel(
        case,
        results.units[key],
        bars,
        min(100.0, 100 * floor / end) if floor is not None else None,
        "",
        bool(results.median(workload.name, case, LOST, base)),
    )


# --- curves -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    name: str
    kind: str
    points: str
    x: float
    y: float  # of its label
    end: float  # where it really ends


@dataclass(frozen=True)
class Curves:
    title: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    curves: list[Curve]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    x_title: str
    y_title: str


def spread_labels(wanted: list[tuple[float, int]], gap: float, low: float, high: float) -> dict[int, float]:
    """Positions at least `gap` apart, near the wanted ones."""
    placed: list[list[float]] = []
    for y, n in sorted(wanted):
        placed.append([max(y, placed[-1][0] + gap) if placed else y, n])
    over = placed[-1][0] - high if placed else 0
    if over > 0:
        placed[-1][0] = high
        for i in range(len(placed) - 2, -1, -1):
            placed[i][0] = min(placed[i][0], placed[i + 1][0] - gap)
    return {int(n): max(low, y) for y, n in placed}


def tick_step(end: float) -> float:
    """A round number that is in `end` between four and ten times."""
    power = 10 ** math.floor(math.log10(end)) if end > 0 else 1
    return power / (1 if end > 4 * power else 2 if end > 2 * power else 5)


def draw(
    title: str,
    lines: dict[str, list[tuple[float, float]]],
    kinds: dict[str, str],
    x_ticks: list[tuple[float, str]],
    x_title: str,
    y_title: str,
    log: bool,
) -> Curves:
    width, height, left, right, top, bottom = 400, 260, 42, 104, 10, 40
    ys = [y for points in lines.values() for _, y in points if y > 0 or not log]
    low, high = (
        (10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)))) if log else (0, max(ys) * 1.05)
    )
    xs = [x for points in lines.values() for x, _ in points]
    x0, x1 = min(xs), max(xs)

    def at_x(x: float) -> float:
        return left + (x - x0) / ((x1 - x0) or 1) * (width - left - right)

    def at_y(y: float) -> float:
        share = (
            (math.log10(max(y, low)) - math.log10(low)) / (math.log10(high) - math.log10(low) or 1)
            if log
            else (y - low) / (high - low)
        )
        return height - bottom - share * (height - top - bottom)

    if log:
        y_ticks = [(at_y(10.0**e), f"{10.0**e:g}") for e in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    else:
        step = tick_step(high)
        y_ticks = [(at_y(step * n), f"{step * n:g}") for n in range(int(high / step) + 1)]
    names = list(lines)
    ends = [(at_y(lines[name][-1][1]), n) for n, name in enumerate(names)]
    labels = spread_labels(ends, 14, top + 4, height - bottom)
    curves = [
        Curve(
            name,
            kinds[name],
            " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in lines[name]),
            at_x(lines[name][-1][0]),
            labels[n],
            ends[n][0],
        )
        for n, name in enumerate(names)
    ]
    return Curves(
        title,
        width,
        height,
        left,
        right,
        top,
        bottom,
        curves,
        [(at_x(x), t) for x, t in x_ticks if x0 <= x <= x1],
        y_ticks,
        x_title,
        y_title,
    )


def distributions(results: Results, suite: Suite, workload: Workload) -> list[Curves]:
    """Percentiles along a logarithmic axis of what remains above them."""
    out = []
    for case in results.cases(workload.name):
        metrics = [m for m in results.metrics(workload.name, case) if m.startswith(DISTRIBUTION)]
        what = metrics[0].removeprefix(DISTRIBUTION).split(":")[0] if metrics else ""
        percents = {m: float(m.rsplit(":", 1)[1].rstrip(" %")) for m in metrics}
        last = max((p for p in percents.values() if p < 100), default=99.999)
        position = {
            m: -math.log10(1 - p / 100) if p < 100 else -math.log10(1 - last / 100) + 1 for m, p in percents.items()
        }
        lines = {}
        for i in suite.implementations:
            points = [(position[m], y) for m in metrics if (y := results.median(workload.name, case, m, i))]
            if len(points) > 1:
                lines[i] = points
        if lines:
            ticks = [(-math.log10(1 - p / 100), f"{p:g}") for p in (50, 90, 99, 99.9, 99.99, 99.999)] + [
                (max(position.values()), "max")
            ]
            out.append(
                draw(
                    case,
                    lines,
                    {i: kind_of(suite, workload.name, i) for i in lines},
                    ticks,
                    f"percentile of {what}",
                    "ms",
                    log=True,
                )
            )
    return out


def over_time(run: Run, suite: Suite) -> list[Curves]:
    """Of series.csv."""
    groups: dict[tuple, dict[str, list[tuple[float, float]]]] = {}
    for s in run.series:
        if s.series.startswith(LANE):
            continue
        groups.setdefault((s.workload, s.case, s.series), {}).setdefault(s.implementation, []).append((s.x, s.y))
    out = []
    for (workload, case, what), lines in groups.items():
        end = max(x for points in lines.values() for x, _ in points)
        step = max(1, round(end / 4))
        out.append(
            draw(
                f"{workload}, {case}: {what}",
                lines,
                {i: kind_of(suite, workload, i) for i in lines},
                [(n * step, f"{n * step:g}") for n in range(1, 6) if n * step <= end],
                what.rpartition(" over ")[2],
                what.split(" ")[1],
                log=False,
            )
        )
    return out


# --- lanes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lane:
    name: str
    y: float
    stretches: list[tuple[float, float]]  # x, width
    shade: int  # the same for the same name


@dataclass(frozen=True)
class Lanes:
    """Of one case: what was done when. `groups`: of each implementation its kind, where its name is written, and its
    lanes, from top to bottom."""

    title: str
    width: int
    height: int
    left: int
    right: int
    bottom: int
    groups: list[tuple[str, str, float, list[Lane]]]
    ticks: list[tuple[float, str]]


LANE_STEP, LANE_TITLE = 13, 19


def time_lines(run: Run, suite: Suite, workload: Workload) -> list[Lanes]:
    """Of the series of series.csv whose points are stretches of time, one picture for each case. The time that is in no
    lane is the program's own."""
    width, left, right, bottom = 860, 150, 12, 34
    found: dict[str, dict[str, dict[str, list[tuple[float, float]]]]] = {}
    for s in run.series:
        if s.workload == workload.name and s.series.startswith(LANE):
            lanes = found.setdefault(s.case, {}).setdefault(s.implementation, {})
            lanes.setdefault(s.series.removeprefix(LANE), []).append((s.x, s.y))
    out = []
    for case, of in found.items():
        names = list(dict.fromkeys(name for lanes in of.values() for name in lanes))
        end = max(x + y for lanes in of.values() for stretches in lanes.values() for x, y in stretches)
        scale = (width - left - right) / (end or 1)
        y, groups = 0.0, []
        for i in [i for i in suite.implementations if i in of]:
            title = y + LANE_TITLE - 6
            y += LANE_TITLE
            lanes = []
            for name in (n for n in names if n in of[i]):
                stretches = [(left + x * scale, max(0.3, length * scale)) for x, length in of[i][name]]
                lanes.append(Lane(name, y, stretches, names.index(name)))
                y += LANE_STEP
            groups.append((i, kind_of(suite, workload.name, i), title, lanes))
        step = tick_step(end)
        ticks = [(left + n * step * scale, f"{n * step:g}") for n in range(int(end / step) + 1)]
        out.append(Lanes(case, width, round(y) + bottom, left, right, bottom, groups, ticks))
    return out


# --- pictures ---------------------------------------------------------------------------------------------------------

CURVE_STYLE = """svg{background:#fff}text{font:12px -apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#57606a}
.grid{stroke:#d0d7de}polyline{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke:#8c959f}
polyline.ours{stroke:#0969da;stroke-width:2.6}polyline.base{stroke:#bc4c00;stroke-width:2.6}
text.ours{fill:#0969da;font-weight:600}text.base{fill:#bc4c00;font-weight:600}
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#9198a1}.grid{stroke:#30363d}
polyline{stroke:#768390}polyline.ours{stroke:#58a6ff}polyline.base{stroke:#f0883e}
text.ours{fill:#58a6ff}text.base{fill:#f0883e}}"""


def curves_picture(c: Curves) -> str:
    """The curves of a report as a picture of their own."""
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {c.width} {c.height}" width="{1.5 * c.width:.0f}" '
        f'height="{1.5 * c.height:.0f}" role="img" aria-label="{escape(c.title)}">',
        f"<style>{CURVE_STYLE}</style>",
    ]
    for y, label in c.y_ticks:
        out.append(f'<line class="grid" x1="{c.left}" x2="{c.width - c.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{c.left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>')
    for x, label in c.x_ticks:
        out.append(f'<text x="{x:.1f}" y="{c.height - c.bottom + 17}" text-anchor="middle">{escape(label)}</text>')
    out.append(f'<text x="{c.left}" y="{c.height - 5}">{escape(c.x_title)} · {escape(c.y_title)}</text>')
    for k in c.curves:
        out.append(f'<polyline class="{k.kind}" points="{k.points}"/>')
        out.append(f'<text class="{k.kind}" x="{k.x + 9:.1f}" y="{k.y + 4:.1f}">{escape(k.name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


STYLE = """text{font:12px -apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#24292f}
.small{font-size:11px;fill:#57606a}
.title{font-size:13px;font-weight:600}.grid{stroke:#d0d7de;stroke-width:1}.one{stroke:#57606a;stroke-width:1.2}
.win{fill:#0969da;stroke:#0969da}.lose{fill:#bc4c00;stroke:#bc4c00}.open{fill:#8c959f;stroke:#8c959f}
.range{stroke-width:2.5;stroke-linecap:round;opacity:.45}text.win,text.lose,text.open{stroke:none}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#30363d}.one{stroke:#9198a1}
.win{fill:#58a6ff;stroke:#58a6ff}.lose{fill:#f0883e;stroke:#f0883e}.open{fill:#768390;stroke:#768390}}"""
PICTURE_WIDTH, LABELS, FIGURES, LINE = 860, 420, 46, 21
LEAST, SAME = 0.04, 0.005  # the left end of the scale; differences that are none


def ends(ratio: Ratio) -> tuple[float, float, float]:
    return ratio.value, ratio.low or ratio.value, ratio.high or ratio.value


def shade(row: Row) -> str:
    """Who is better, where that is beyond doubt."""
    value = row.ratio.value
    return "open" if not row.sure or abs(value - 1) < SAME else "win" if value < 1 else "lose"


def picture(some_rows: list[Row], cases: dict[str, list[str]], suite: Suite, plain: set[str]) -> str:
    """Ratios of the headline figures, in a logarithmic scale. `some_rows`: those of the table beside it. `cases`: of
    each workload, in their order. `plain`: suffixes of labels of other builds, which are left out."""
    of = {(r.workload, r.case, r.metric): r for r in some_rows}
    rows: list[tuple[str, Row | None]] = []
    for title, workloads in suite.groups.items():
        some = []
        for workload, metric in suite.headlines:
            for case in cases.get(workload, []) if workload in workloads else []:
                row = of.get((workload, case, metric))
                if (
                    row
                    and 0 < row.ratio.value < float("inf")
                    and not row.lost_values
                    and case.split(", ")[-1] not in plain
                ):
                    some.append((row.name, row))
        if some:
            rows += [(title, None), *some]
    values = [v for _, row in rows if row for v in ends(row.ratio) if v > 0]
    low, high = max(LEAST, min([*values, 0.5])), max([*values, 2])
    x0, x1 = LABELS, PICTURE_WIDTH - FIGURES - 8

    def x(value: float) -> float:
        return x0 + (math.log(max(value, low)) - math.log(low)) / (math.log(high) - math.log(low)) * (x1 - x0)

    height = 54 + LINE * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PICTURE_WIDTH} {height}" '
        f'width="{PICTURE_WIDTH}" height="{height}" role="img" '
        f'aria-label="Ratios to {escape(suite.base_title)}">',
        f"<style>{STYLE}</style>",
        '<text class="small" x="8" y="16">grey: undecided</text>',
        f'<text class="small" x="{x(1) - 8:.1f}" y="16" text-anchor="end">← {escape(suite.title)} better</text>',
        f'<text class="small" x="{x(1) + 8:.1f}" y="16">worse →</text>',
    ]
    for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50):
        if low <= tick <= high:
            out.append(
                f'<line class="{"one" if tick == 1 else "grid"}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" '
                f'y1="24" y2="{height - 22}"/>'
            )
            out.append(f'<text class="small" x="{x(tick):.1f}" y="{height - 7}" text-anchor="middle">{tick:g}</text>')
    for n, (label, row) in enumerate(rows):
        y = 40 + LINE * n
        if row is None:
            out.append(f'<text class="title" x="8" y="{y + 4}">{escape(label)}</text>')
            continue
        cls, ratio = shade(row), row.ratio
        out.append(f'<text x="{LABELS - 12}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        if ratio.value < low:
            out.append(f'<path class="{cls}" d="M{x(low) - 2:.1f} {y}l9 -4.5v9z"/>')
            out.append(
                f'<text class="{cls}" x="{PICTURE_WIDTH - 8}" y="{y + 4}" text-anchor="end">{ratio.value:.2g}</text>'
            )
            continue
        if ratio.low is not None and ratio.high is not None:
            out.append(
                f'<line class="range {cls}" x1="{x(ratio.low):.1f}" x2="{x(ratio.high):.1f}" y1="{y}" y2="{y}"/>'
            )
        out.append(
            f'<circle class="{cls}" cx="{x(ratio.value):.1f}" cy="{y}" r="4"><title>{interval(ratio)}</title></circle>'
        )
        out.append(
            f'<text class="{cls}" x="{PICTURE_WIDTH - 8}" y="{y + 4}" text-anchor="end">{times(ratio.value)}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"
