# SPDX-License-Identifier: MIT
"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from compare.intervals import ENOUGH

SUITE_NAMES = ("boxroot", "outheap", "rust")


def chosen(names: str | None, table: Iterable[str]) -> set[str]:
    picked = set(names.split(",")) if names else set(table)
    if unknown := picked - set(table):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; see --list")
    return picked


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="bench/run",
        description="Benchmarks of Boxroot, Outheap and the safe Rust layer beside their rivals. "
        "How to read and extend them: bench/README.md.",
    )
    what = p.add_argument_group("what is done, instead of measuring")
    act = what.add_mutually_exclusive_group()
    act.add_argument("--list", action="store_true", help="list workloads, implementations and builds")
    act.add_argument(
        "--check-rivals",
        action="store_true",
        help="run the functional test of all implementations; exit code 1 when one fails it",
    )
    act.add_argument(
        "--compare",
        nargs=2,
        metavar=("OLD", "NEW"),
        help="compare two folders of results, two archives, or the committed results of two git commits",
    )
    act.add_argument(
        "--publish",
        action="store_true",
        help="write the figures in README.md and docs/, and the summary, from bench/results/",
    )
    act.add_argument(
        "--report",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="make the report, with every figure, of the recorded runs, or of these (see --out)",
    )
    what.add_argument(
        "--check",
        action="store_true",
        help="with --publish: write nothing; exit code 1 when a file is not what it would write",
    )
    what.add_argument(
        "--release", action="store_true", help="with --check: also when figures are older than what they measure"
    )

    choice = p.add_argument_group("what is measured")
    choice.add_argument("--suite", choices=SUITE_NAMES, default="boxroot", help="(default: boxroot)")
    mode = choice.add_mutually_exclusive_group()
    mode.add_argument(
        "--quick",
        dest="mode",
        action="store_const",
        const="quick",
        default="quick",
        help="small sizes, and the two that are compared (default)",
    )
    mode.add_argument(
        "--full",
        dest="mode",
        action="store_const",
        const="full",
        help="all sizes and rivals: hours",
    )
    choice.add_argument(
        "--ocaml", metavar="PREFIX|VERSION", help="compiler to use (default: that of tools/toolchain --default)"
    )
    choice.add_argument(
        "--only",
        metavar="WORKLOADS",
        help="comma-separated; see --list. What stands before a comma in names chooses all of them",
    )
    choice.add_argument("--impl", metavar="IMPLEMENTATIONS", help="comma-separated; see --list")
    choice.add_argument(
        "--build",
        metavar="BUILDS",
        help="Boxroot: comma-separated; every case in these builds, instead of those that it names",
    )
    choice.add_argument("--case", metavar="TEXT", help="only cases whose label contains TEXT")
    choice.add_argument(
        "--runtimes",
        type=Path,
        metavar="DIR",
        help="Outheap: a folder with libasmrun_outheap*.a (default: they are built)",
    )
    choice.add_argument(
        "--rounds",
        type=int,
        default=ENOUGH,
        help=f"repeats of everything (default: {ENOUGH}; with fewer no row is decided)",
    )
    choice.add_argument("--build-only", action="store_true")

    result = p.add_argument_group("results")
    where = result.add_mutually_exclusive_group()
    where.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the raw figures (default: _build/bench/results/SUITE/VERSION/MACHINE), "
        "with --report file of the report",
    )
    where.add_argument(
        "--record",
        action="store_true",
        help="put them into bench/results/, where --publish looks; refused on a busy machine or a dirty tree",
    )
    result.add_argument(
        "--anyway", action="store_true", help="record nevertheless; the results say why they should not be"
    )
    options = p.parse_args(arguments)
    if options.check and not options.publish:
        p.error("--check goes with --publish")
    return options
