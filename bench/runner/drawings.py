# SPDX-License-Identifier: MIT
"""Charts: data for the Vega-Lite templates of charts.json. The library that draws them is fetched when it is needed
(the group `charts` of pyproject.toml) and never committed."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import subprocess
from pathlib import Path

from .compiler import ROOT
from .model import DISTRIBUTION, LANE, Suite, Workload
from .results import Results, Run
from .rows import CONTESTANTS, Row
from .text import number, times

TEMPLATES = json.loads(Path(__file__).with_name("charts.json").read_text())
COLOURS = TEMPLATES["colours"]
CLIP = 2.6  # a bar longer than so many times the longest of ours, the base's and the floor's is cut
SAME = 0.005  # differences that are none
LEAST = 0.03  # where the scale of ratios begins
VEGA_LITE = "6.4"
LIBRARY = f"import vl_convert; print(vl_convert.javascript_bundle(vl_version='{VEGA_LITE}'))"
DRAW = f"""import json, sys, vl_convert
for line in sys.stdin: print(json.dumps(vl_convert.vegalite_to_svg(json.loads(line), vl_version='{VEGA_LITE}')))"""


def with_library(program: str, text: str = "") -> str | None:
    """What it prints; None where the library cannot be had."""
    command = [ROOT / "tools" / "python", "charts", "-c", program]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True)
    return done.stdout if done.returncode == 0 else None


def dark_style() -> str:
    """Colours are attributes in a drawing, which rules of a style sheet overrule."""
    rules = (
        f'[{what}="{light}"]{{{what}:{dark}}}'
        for light, dark in TEMPLATES["dark"].items()
        for what in ("fill", "stroke")
    )
    return f"@media(prefers-color-scheme:dark){{{''.join(rules)}}}"


def digest(chart: dict) -> str:
    return hashlib.sha256(json.dumps([chart, VEGA_LITE, dark_style()], ensure_ascii=False).encode()).hexdigest()[:16]


def svg_files(charts: dict[Path, dict]) -> dict[Path, str] | None:
    """Pictures with the digest of what they were drawn from."""
    printed = with_library(DRAW, "".join(json.dumps(chart) + "\n" for chart in charts.values()))
    if printed is None:
        return None
    files = {}
    for (path, chart), line in zip(charts.items(), printed.splitlines()):
        head, rest = json.loads(line).split(">", 1)
        files[path] = f"<!-- {digest(chart)} -->\n{head}><style>{dark_style()}</style>{rest}\n"
    return files


def template(kind: str, values: list[dict]) -> dict:
    chart = copy.deepcopy(TEMPLATES[kind])
    schema = f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE.split('.')[0]}.json"
    return {"$schema": schema, "config": TEMPLATES["config"], "data": {"values": values}, **chart}


def best_of(results: Results, key: tuple[str, str, str], contestants: dict[str, float]) -> list[str]:
    """The best, and those after it that cannot be told from it. One round decides nothing."""
    ranked = sorted(contestants, key=lambda i: contestants[i])
    decided = [i for i in ranked if len(results.of(*key, i)) > 1]
    winners: list[str] = []
    for name in decided if len(decided) > 1 and decided[0] == ranked[0] else []:
        ratio = results.ratio(*key, name, winners[0]) if winners else None
        if ratio and ratio.value > 1 + SAME:
            one, first = results.of(*key, name), results.of(*key, winners[0])
            if ratio.low > 1 if ratio.low is not None else all(one[r] > first[r] for r in one.keys() & first.keys()):
                break
        winners.append(name)
    return winners


def bars(results: Results, suite: Suite, workload: Workload, case: str, metric: str) -> dict | None:
    """A bar for each implementation, with the range of its rounds and the floor's line."""
    key, base = (workload.name, case, metric), suite.base_of(workload.name)
    medians = {i: m for i in suite.implementations if (m := results.median(*key, i)) is not None}
    kinds = {i: suite.kind_of(workload.name, i) for i in medians}
    main = [m for i, m in medians.items() if kinds[i] in ("ours", "base", "floor")]
    if not medians or (len(medians) < 2 and not main) or max(medians.values()) <= 0:
        return None
    winners = best_of(results, key, {i: m for i, m in medians.items() if kinds[i] in CONTESTANTS or kinds[i] == "ours"})
    most = max(medians.values())
    end = min(most, CLIP * max(main)) if main and max(main) > 0 else most
    floor = medians.get(suite.floors.get(workload.name, ""))
    values = []
    for name, value in sorted(medians.items(), key=lambda item: item[1]):
        rounds = results.of(*key, name).values()
        ratio = results.ratio(*key, name, base) if name != base else None
        star = "★ " if name in winners and workload.compared(metric) else ""
        bar = {
            "name": name,
            "colour": COLOURS[kinds[name]],
            "end": min(max(value, 0), end),
            "cut": value > end * 1.001,
            "label": f"{star}{number(value)}"
            + (f"\u2002{times(ratio.value)}×" if ratio and times(ratio.value) else ""),
            "note": suite.implementations[name].note,
            "rounds": len(rounds),
        }
        if len(rounds) > 1:
            bar |= {"low": min(max(min(rounds), 0), end), "high": min(max(*rounds, 0), end)}
        if floor is not None and floor <= end:
            bar["floor"] = floor
        values.append(bar)
    chart = template("bars", values)
    bold = chart["encoding"]["y"]["axis"]["labelFontWeight"]["condition"]
    bold["test"] = bold["test"].replace("OURS", suite.ours_of(workload.name)).replace("BASE", base)
    return chart


def curves(
    suite: Suite, workload: str, lines: dict[str, list[tuple[float, float]]], x_title: str, y_title: str
) -> dict:
    kinds = {i: suite.kind_of(workload, i) for i in lines}
    values = [
        {
            "name": i,
            "x": round(x, 5),
            "y": y,
            "width": 2.6 if kinds[i] in ("ours", "base") else 1.6,
            "dash": kinds[i] in ("floor", "baseline"),
        }
        for i, points in lines.items()
        for x, y in points
    ]
    chart = template("curves", values)
    encoding, others = chart["encoding"], iter(TEMPLATES["lines"] * len(lines))
    encoding["x"]["title"], encoding["y"]["title"] = x_title, y_title
    encoding["color"]["scale"] = {
        "domain": list(lines),
        "range": [COLOURS[kind] if kind in ("ours", "base") else next(others) for kind in kinds.values()],
    }
    return chart


def distributions(results: Results, suite: Suite, workload: Workload) -> list[tuple[str, dict]]:
    """Percentiles along a logarithmic axis of what remains above them; by case."""
    out = []
    for case in results.cases(workload.name):
        metrics = [m for m in results.metrics(workload.name, case) if m.startswith(DISTRIBUTION)]
        percents = {m: float(m.rsplit(":", 1)[1].rstrip(" %")) for m in metrics}
        last = max((p for p in percents.values() if p < 100), default=99.999)
        most = -math.log10(1 - last / 100) + 1
        at = {m: -math.log10(1 - p / 100) if p < 100 else most for m, p in percents.items()}
        lines = {}
        for i in suite.implementations:
            points = [(at[m], y) for m in metrics if (y := results.median(workload.name, case, m, i))]
            if len(points) > 1:
                lines[i] = points
        if lines:
            what = metrics[0].removeprefix(DISTRIBUTION).split(":")[0]
            chart = curves(suite, workload.name, lines, f"percentile of {what}", "ms")
            chart["encoding"]["y"] |= {"scale": {"type": "log"}, "axis": {"values": [10.0**n for n in range(-6, 7)]}}
            ticks = [round(-math.log10(1 - p / 100), 5) for p in (50, 90, 99, 99.9, 99.99, 99.999) if p <= last]
            percent = "format(100 - pow(10, 2 - datum.value), '.5~g')"
            label = f"datum.value > {most - 0.01:.2f} ? 'max' : {percent}"
            chart["encoding"]["x"]["axis"] |= {"values": [*ticks, round(most, 5)], "labelExpr": label}
            out.append((case, chart))
    return out


def over_time(run: Run, suite: Suite) -> list[tuple[tuple[str, str, str], dict]]:
    """Of series.csv; by workload, case and what was looked at."""
    found: dict[tuple, dict[str, list[tuple[float, float]]]] = {}
    for s in (s for s in run.series if not s.series.startswith(LANE)):
        found.setdefault((s.workload, s.case, s.series), {}).setdefault(s.implementation, []).append((s.x, s.y))
    return [
        (key, curves(suite, key[0], lines, key[2].rpartition(" over ")[2], key[2].split(" ")[1]))
        for key, lines in found.items()
    ]


def time_lines(run: Run, suite: Suite, workload: Workload) -> list[tuple[str, dict]]:
    """Of the series of series.csv whose points are stretches of time; by case."""
    found: dict[str, list] = {}
    order = list(suite.implementations)
    for s in (s for s in run.series if s.workload == workload.name and s.series.startswith(LANE)):
        lane = s.series.removeprefix(LANE)
        stretch = {"name": f"{s.implementation}: {lane}", "lane": lane, "x": s.x, "x2": s.x + s.y}
        found.setdefault(s.case, []).append((order.index(s.implementation), stretch))
    return [
        (case, template("lanes", [stretch for _, stretch in sorted(of, key=lambda item: item[0])]))
        for case, of in found.items()
    ]


def ratios(some: list[tuple[str, str, Row]], title: str) -> dict:
    """(group, name, row): the ratio to the best of the others, in a logarithmic scale."""
    values = []
    for group, name, row in some:
        best = row.best.ratio
        if 0 < best.value < math.inf:
            label = f"{times(best.value)}\u2002{row.best.name}"
            value = {"group": group, "name": name, "value": best.value, "label": label}
            if best.low and best.high and best.high < math.inf:
                value |= {"low": best.low, "high": best.high}
            values.append(value | {"colour": COLOURS[row.verdict]})
    chart = template("ratios", values)
    x = chart["spec"]["layer"][2]["encoding"]["x"]
    ends = [v for value in values for v in (value["value"], value.get("low", 1), value.get("high", 1))]
    low = max(LEAST, min([0.5, *ends]) * 0.9)
    x["title"], x["scale"]["domain"] = title, [low, max([2, *ends]) * 1.1]
    chart["facet"]["row"]["sort"] = list(dict.fromkeys(group for group, _, _ in some))
    return chart
