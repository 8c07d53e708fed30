# SPDX-License-Identifier: MIT
"""Writes coverage.md beside gcovr's figures: a table by file, each function with lines that no test reaches and the
reason (unreached.toml), and the groups of branches that are not taken."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REASONS = Path(__file__).with_name("unreached.toml")
PRODUCTS = {"boxroot": "Boxroot", "outheap": "Outheap"}
# What a line with a branch that is not taken is; the first that matches.
GROUPS = (
    (r"_ASSERT\b|OH_CHECK|assertion failed|oh_log_abort", "an assertion or a consistency check that has never failed"),
    (r"_cas_|BUSY|STARTING|while \(c == NULL\)|other [!=]= NULL", "a race that another thread wins or loses"),
    (r"EACH_PAIR|FAN_OUT|LEAF|ATTEMPTS|PAIRS|LIMIT|_limit\(\)", "a limit that no test comes to"),
    (r"madvise|mprotect|munmap|pthread_|syscall|clock_gettime|dladdr|backtrace|atexit|read\(|\[never\]|cpu_supports",
     "an answer of the system or the C library that this machine does not give"),
    (r"NULL|== 0\b|!= 0\b|errno", "a value that is never null or zero here, or always is"),
)  # fmt: skip
INTRODUCTION = """\
Measured at commit {commit}: which lines and branches of the C sources the tests reach, in the flavours `coverage`,
`coverage-tiny` (with the checked build) and `coverage-conservative` (`tools/testing/flavours.py`), with the newest
OCaml 5 and 4.14.1. Inline functions are counted where the library calls them, and where tests call them by address.
Not measured is `outheap/runtime/overlay`, which is compiled as part of OCaml's runtime; there `every-unit-is-missed`
(`outheap/test/README.md`) shows that each unit is needed."""
OTHER = "part of a condition whose other parts decide in all tests"


def plain(name: str | None) -> str:
    """The name in the source, of a link name with version and switches."""
    return re.sub(r"__program_and_library.*", "", (name or "").lstrip("*")).replace("boxroot_v5_", "boxroot_") or "?"


class File:
    def __init__(self, figures: dict) -> None:
        self.path: str = figures["file"]
        self.hits: Counter[int] = Counter()
        self.branches: dict[int, Counter[int]] = defaultdict(Counter)
        self.functions: dict[int, str] = {}
        for line in figures["lines"]:
            number = line["line_number"]
            self.hits[number] += line["count"]
            self.functions.setdefault(number, plain(line.get("function_name")))
            for branch in line["branches"]:
                self.branches[number][branch["branchno"]] += branch["count"]
        self.text = (ROOT / self.path).read_text().splitlines()

    @property
    def reached(self) -> int:
        return sum(n > 0 for n in self.hits.values())

    def taken(self) -> tuple[int, int]:
        ways = [n for line in self.branches.values() for n in line.values()]
        return sum(n > 0 for n in ways), len(ways)

    def unreached(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for number, hits in sorted(self.hits.items()):
            if hits == 0:
                found[self.functions[number]].append(number)
        return found

    def groups(self) -> Counter[str]:
        """Branches not taken, of lines that are reached."""
        found: Counter[str] = Counter()
        for number, ways in self.branches.items():
            left = sum(n == 0 for n in ways.values())
            if left and self.hits[number]:
                line = self.text[number - 1]
                found[next((why for pattern, why in GROUPS if re.search(pattern, line)), OTHER)] += left
        return found


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def table(files: list[File]) -> list[str]:
    out = ["| file | lines | reached | branches | taken |", "| --- | --- | --- | --- | --- |"]
    for file in files:
        taken, ways = file.taken()
        lines = len(file.hits)
        out.append(f"| `{file.path}` | {lines} | {percent(file.reached, lines)} | {ways} | {percent(taken, ways)} |")
    lines, reached = sum(len(f.hits) for f in files), sum(f.reached for f in files)
    taken, ways = (sum(n) for n in zip(*(f.taken() for f in files), strict=True))
    return [*out, f"| all | {lines} | {percent(reached, lines)} | {ways} | {percent(taken, ways)} |"]


def lines_left(files: list[File], reasons: dict[str, dict[str, str]]) -> tuple[list[str], list[str]]:
    out, unexplained = ["| function | lines | why |", "| --- | --- | --- |"], []
    for file in files:
        for function, numbers in file.unreached().items():
            why = reasons.get(file.path, {}).get(function) or reasons.get(file.path, {}).get("*")
            if why is None:
                unexplained.append(f"{file.path}:{numbers[0]}: {function}")
            out.append(f"| `{file.path}`: `{function}` | {len(numbers)} | {why or '**no reason given**'} |")
    return out, unexplained


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def document(files: list[File], reasons: dict[str, dict[str, str]]) -> tuple[str, list[str]]:
    out = [
        "# Coverage",
        "",
        textwrap.fill(INTRODUCTION.format(commit=commit()), 120, break_long_words=False, break_on_hyphens=False),
    ]
    unexplained = []
    for folder, title in PRODUCTS.items():
        own = [f for f in files if f.path.startswith(f"{folder}/")]
        left, missing = lines_left(own, reasons)
        unexplained += missing
        groups: Counter[str] = sum((f.groups() for f in own), Counter())
        out += ["", f"## {title}", "", *table(own), "", "Lines not reached, and why:", "", *left]
        out += [
            "",
            "Branches not taken, of lines that are reached:",
            "",
            "| branches | what they are |",
            "| --- | --- |",
        ]
        out += [f"| {n} | {why} |" for why, n in groups.most_common()]
    return "\n".join(out) + "\n", unexplained


def main() -> int:
    source = Path(sys.argv[1])
    figures = json.loads(source.read_text())["files"]
    reasons = tomllib.loads(REASONS.read_text())
    text, unexplained = document(sorted((File(f) for f in figures), key=lambda f: f.path), reasons)
    source.with_name("coverage.md").write_text(text)
    for place in unexplained:
        print(f"{place}: not reached, and no reason in {REASONS.name}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
