# SPDX-License-Identifier: MIT
"""Resident memory over time: how it is looked at, and how it is drawn."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from compare import WAYS

Curve = list[tuple[float, float]]  # seconds since the start, MB

EVERY = 0.01  # seconds between two looks
TENTHS = 10
LEVELS = "▁▂▃▄▅▆▇█"


class Reader:
    """Looks at a process, which may have ended. The first look is before it has become the program, and left out."""

    def __init__(self, pid: int) -> None:
        self.place = Path(f"/proc/{pid}/statm")
        self.began = time.monotonic()
        self.curve: Curve = []
        self.page = os.sysconf("SC_PAGE_SIZE") / 1e6

    def poll(self) -> None:
        now = time.monotonic() - self.began
        if now < EVERY or (self.curve and now - self.curve[-1][0] < EVERY):
            return
        try:
            pages = int(self.place.read_text().split()[1])
        except (OSError, IndexError):
            return
        if pages:  # a process that has ended and is not waited for yet has none
            self.curve.append((now, pages * self.page))


def figures(curve: Curve) -> dict[str, float]:
    """The mean over time, and what is resident when the program ends: the median of the last twentieth of the time, as
    a program may free its memory at exit. A program that is over at once has none."""
    if len(curve) < 3:
        return {}
    spans = [b[0] - a[0] for a, b in zip(curve, curve[1:])]
    means = [(a[1] + b[1]) / 2 for a, b in zip(curve, curve[1:])]
    mean = sum(s * m for s, m in zip(spans, means)) / sum(spans)
    last = [mb for _, mb in curve[-max(3, len(curve) // 20) :]]
    return {"resident, mean": mean, "resident, at the end": statistics.median(last)}


def at(curve: Curve, seconds: float) -> float | None:
    """The last look until then; None: the program had ended."""
    if seconds > curve[-1][0] + 2 * EVERY:
        return None
    return next((mb for t, mb in reversed(curve) if t <= seconds), curve[0][1])


def text(curves: dict[str, Curve], names: dict[str, str]) -> list[str]:
    """A line of bars for each way, over the same time and with the same scale, and what they are at tenths of it."""
    end = max(curve[-1][0] for curve in curves.values())
    top = max(mb for curve in curves.values() for _, mb in curve)
    width, lines = 60, [f"resident memory over {end:.3g} s, up to {top:.3g} MB:"]
    for way in WAYS:
        looks = [at(curves[way], end * (i + 0.5) / width) for i in range(width)]
        bars = (" " if mb is None else LEVELS[min(7, int(mb / top * 8))] for mb in looks)
        lines.append(f"{names[way]:9}{''.join(bars)}")
    lines.append("MB at" + "".join(f"{end * i / TENTHS:7.3g}" for i in range(1, TENTHS + 1)) + " s")
    for way in WAYS:
        looks = [at(curves[way], end * i / TENTHS) for i in range(1, TENTHS + 1)]
        lines.append(f"{names[way]:5}" + "".join("      -" if mb is None else f"{mb:7.3g}" for mb in looks))
    return lines


def picture(curves: dict[str, Curve], names: dict[str, str]) -> str:
    """The same as SVG."""
    width, height, left, under = 640, 240, 60, 30
    end = max(curve[-1][0] for curve in curves.values())
    top = max(mb for curve in curves.values() for _, mb in curve) * 1.05
    x = lambda t: left + t / end * (width - left - 10)  # noqa: E731
    y = lambda mb: (height - under) * (1 - mb / top) + 5  # noqa: E731
    parts = [f'<svg width="{width}" height="{height + 20}" font-family="sans-serif" font-size="13">']
    for i in range(5):
        mb, t = top * i / 4, end * i / 4
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(mb):.1f}" y2="{y(mb):.1f}" stroke="#ccc"/>')
        parts.append(f'<text x="{left - 8}" y="{y(mb) + 4:.1f}" text-anchor="end">{mb:.3g} MB</text>')
        parts.append(f'<text x="{x(t):.1f}" y="{height}" text-anchor="middle">{t:.3g} s</text>')
    for way, colour, place in zip(WAYS, ("#666", "#1a7f37"), (0.4, 0.7)):
        step = max(1, len(curves[way]) // 1000)
        points = " ".join(f"{x(t):.1f},{y(mb):.1f}" for t, mb in curves[way][::step])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{width * place:.0f}" y="{height + 18}" fill="{colour}">{names[way]}</text>')
    return "".join([*parts, "</svg>"])
