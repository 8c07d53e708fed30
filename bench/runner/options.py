# SPDX-License-Identifier: MIT
"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from compare.intervals import ENOUGH

SUITE_NAMES = ("boxroot", "outheap", "rust")
FLAGS = {
    "what is done, instead of measuring": {
        "--list": "list workloads, implementations and builds",
        "--check-rivals": "run the functional test of all implementations; exit code 1 when one fails it",
        "--publish": "write the figures in README.md and docs/, and the summary, from bench/results/",
        "--check": "with --publish: write nothing; exit code 1 when a file is not what it would write",
        "--release": "with --check: exit code 1 also when figures are older than the sources of what they measure",
        "--build-only": "build what would be measured",
    },
    "what is measured": {"--full": "all sizes and rivals: hours (default: small sizes, the two that are compared)"},
    "results": {
        "--record": "put them into bench/results/, where --publish looks; refused on a busy machine or a dirty tree",
        "--anyway": "record nevertheless; the results say why they should not be",
    },
}
WORDS = {
    "what is measured": {
        "--ocaml": ("PREFIX|VERSION", "compiler to use (default: that of tools/toolchain --default)"),
        "--only": ("WORKLOADS", "comma-separated; what stands before a comma in names chooses all of them"),
        "--impl": ("IMPLEMENTATIONS", "comma-separated; see --list"),
        "--build": ("BUILDS", "Boxroot: comma-separated; every case in these builds, instead of those that it names"),
        "--case": ("TEXT", "only cases whose label contains TEXT"),
    },
}
FOLDERS = {
    "what is measured": {"--runtimes": "Outheap: a folder with libasmrun_outheap*.a (default: they are built)"},
    "results": {
        "--out": "folder of the raw figures (default: _build/bench/results/SUITE/VERSION/MACHINE), "
        "with --report file of the report",
    },
}


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
    groups = {title: p.add_argument_group(title) for title in FLAGS}
    instead, choice, _ = groups.values()
    for title, group in groups.items():
        for name, words in FLAGS[title].items():
            group.add_argument(name, action="store_true", help=words)
        for name, (metavar, words) in WORDS.get(title, {}).items():
            group.add_argument(name, metavar=metavar, help=words)
        for name, words in FOLDERS.get(title, {}).items():
            group.add_argument(name, metavar="DIR", type=Path, help=words)
    compared = "compare two folders of results, two archives, or the committed results of two git commits"
    instead.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help=compared)
    reported = "make the report, with every figure, of the recorded runs, or of these (see --out)"
    instead.add_argument("--report", nargs="*", type=Path, metavar="DIR", help=reported)
    choice.add_argument("--suite", choices=SUITE_NAMES, default="boxroot", help="(default: boxroot)")
    rounds = f"repeats of everything (default: {ENOUGH}; with fewer no row is decided)"
    choice.add_argument("--rounds", type=int, default=ENOUGH, help=rounds)
    options = p.parse_args(arguments)
    options.mode = "full" if options.full else "quick"
    if options.check and not options.publish:
        p.error("--check goes with --publish")
    if options.record and options.out:
        p.error("--record chooses its folder: leave out --out")
    if sum(map(bool, (options.list, options.check_rivals, options.publish, options.compare))) > 1:
        p.error("one thing at a time")
    return options
