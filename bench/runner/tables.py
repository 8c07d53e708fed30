# SPDX-License-Identifier: MIT
"""Reads a suite's tables from bench/suites/NAME.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from itertools import product

from .compiler import BENCH
from .model import Case, Suite, Workload

BOTH = ("quick", "full")
OF_CASES = ("label", "args", "with", "mode", "builds", "timeout", "once", "ocaml5_only", "gigabytes", "each", "by")
OF_WORKLOADS = ("modules", "hidden", "context", "also")


def expanded(words: list, sets: dict[str, list]) -> tuple:
    """With each set in the place of its $NAME."""
    found = []
    for word in words:
        is_set = isinstance(word, str) and word.startswith("$")
        found += expanded(sets[word[1:]], sets) if is_set else [word]
    return tuple(found)


def cases_of(case: dict, sets: dict[str, list]) -> Iterator[Case]:
    rows = [expanded(case.get(name, [[]]), sets) for name in ("each", "by")]
    for one, other in product(*rows):

        def filled(text: str, row: list[str] = [*one, *other]) -> str:  # noqa: B006
            for n, word in enumerate(row):
                text = text.replace(f"%{n}", word)
            return text

        yield Case(
            filled(case.get("label", "")),
            tuple(filled(case.get("args", "")).split()),
            expanded(case["with"], sets),
            (case["mode"],) if "mode" in case else BOTH,
            expanded(case.get("builds", ["users"]), sets),
            **{key: case[key] for key in ("timeout", "once", "ocaml5_only", "gigabytes") if key in case},
        )


def workload(name: str, tables: dict[str, dict], sets: dict[str, list], measures: dict[str, Callable]) -> Workload:
    table = tables[name]
    while "like" in table:
        like = table["like"]
        table = {**tables[like], **{key: value for key, value in table.items() if key != "like"}}
    given = {key: table[key] for key in OF_CASES if key in table}
    cases = tuple(c for case in table.get("cases", [{}]) for c in cases_of({**given, **case}, sets))
    more = {key: value for key, value in table.items() if key not in (*OF_CASES, "cases")}
    more |= {key: expanded(more[key], sets) for key in OF_WORKLOADS if key in more}
    if "measure" in more:
        more["measure"] = measures[more["measure"]]
    return Workload(name=name, cases=cases, **more)


def read(name: str, entry: type, measures: dict[str, Callable], **given: object) -> Suite:
    """`entry`: the class of an implementation. `measures`: functions by their names. `given`: what is no data."""
    tables = tomllib.loads((BENCH / "suites" / f"{name}.toml").read_text())
    sets, workloads, own = tables.pop("sets"), tables.pop("workloads"), tables.pop("implementations")
    floors = {w: floor for floor, names in tables.pop("floors", {}).items() for w in names}
    tables["groups"] = {title: tuple(names) for title, names in tables["groups"].items()}
    lists = {key: expanded(value, sets) for key, value in tables.items() if isinstance(value, list)}
    return Suite(
        **{**tables, **lists, **given},
        name=name,
        floors=floors,
        implementations={n: entry(name=n, **fields) for n, fields in own.items()},
        workloads={n: workload(n, workloads, sets, measures) for n in workloads},
    )
