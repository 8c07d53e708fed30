# SPDX-License-Identifier: MIT
"""A case: one program with arguments, run once, that passes, fails or skips. And how tests are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testing import steps
from testing.keep import keep
from testing.run import Outcome, run, shown
from testing.shrink import shrink

SHRINKING = 60.0  # seconds at most
COMPILER = re.compile(r"(?:^|-)(\d+\.\d+\.\d+(?:[+~]\w+)*)(?=-|$)")


@dataclass(frozen=True)
class Case:
    product: str  # boxroot, outheap, …
    group: str  # compiler and flavour, as 5.4.1-checked
    name: str  # as unit/deleted-elsewhere
    command: Sequence[str] = ()
    limit: float = 240
    build: Callable[[], Path] | None = None  # gives the folder to run in
    settings: dict[str, str] = field(default_factory=dict)
    random: bool = False  # is shrunk when it fails
    slow: bool = False  # for `make test-all`, and for who asks for it by name or part
    timing: bool = False  # the clock decides: for `make test-timing`
    error: str = ""  # why it could not be listed

    @property
    def label(self) -> str:
        return f"{self.product}[{self.group}] {self.name}"

    def param(self, *marks: pytest.MarkDecorator) -> object:
        own = [getattr(pytest.mark, name) for name in ("random", "slow", "timing") if getattr(self, name)]
        return pytest.param(self, id=f"{self.group} {self.name}", marks=[*own, *marks])


def is_of_the_scaffolding(nodeid: str) -> bool:
    return nodeid.startswith(("tools/", "bench/")) and "test_lint.py" not in nodeid


def label_of(nodeid: str) -> str:
    """`boxroot[5.4.1-checked] unit/basics` for the node that pytest calls
    `boxroot/test/test_programs.py::test_program[5.4.1-checked unit/basics]`: what progress, time and days are told by,
    and what -k finds too. The identifier itself where that says it as well."""
    path, _, rest = without_group(nodeid).partition("::")
    function, bracket, parameters = rest.partition("[")
    if not bracket or is_of_the_scaffolding(path):
        return without_group(nodeid)
    product = {"test_dune.py": "dune", "test_lint.py": "lint"}.get(Path(path).name, path.split("/")[0])
    title = function.removeprefix("test_").replace("_", "-")
    group, _, name = parameters[:-1].partition(" ")
    if not name and (compiler := COMPILER.search(group)):
        more = (group[: compiler.start()] + group[compiler.end() :]).strip("-")
        group, name = compiler[1], f"{title}/{more}" if more else title
    return f"{product}[{group}] {name or title}"


def without_group(nodeid: str) -> str:
    """Without what xdist appends for tests that run in one process."""
    before, _, group = nodeid.rpartition("@")
    return before if before and "]" not in group else nodeid


def broken(product: str, group: str, error: Exception) -> Case:
    """Stands for the tests of a program that cannot be built, so that the others run."""
    return Case(product, group, "build", error=str(error))


def params(product: str, group: str, listed: Callable[[], Iterable[Case]]) -> list[object]:
    """The cases that `listed` gives; or one that fails, when a program cannot be built for its list."""
    try:
        return [case.param() for case in listed()]
    except steps.BuildFailed as error:
        return [broken(product, group, error).param()]


def folder_for(case: Case) -> Path:
    if case.error:
        pytest.fail(case.error, pytrace=False)
    assert case.build is not None
    try:
        return case.build()
    except steps.BuildFailed as error:
        pytest.fail(f"it does not build: {error}", pytrace=False)


def attempt(case: Case, command: Sequence[str], limit: float, log_name: str) -> Outcome:
    folder = folder_for(case)
    return run(command, folder, folder / "logs" / f"{log_name}.log", limit, case.settings)


def log_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)


def report(case: Case, outcome: Outcome) -> str:
    """Keeps a failure, makes it smaller if it is one of a random test, and says what is known."""
    notes = []
    if case.random:
        found = shrink(
            outcome, lambda words, limit: attempt(case, words, limit, f"{log_name(case.name)}.shrink"), SHRINKING
        )
        if found.outcome is not outcome:
            notes = [f"first seen as {outcome.again()}"]
        smaller = f"smallest command that failed, after {found.runs} more runs in {found.seconds:.0f} s"
        if found.outcome is outcome:
            smaller = f"none of {found.runs} smaller runs in {found.seconds:.0f} s failed"
        original, outcome = outcome, found.outcome
        kept = keep(case.label, original, [f"smallest: {outcome.again()}"])
        notes.append(smaller)
    else:
        kept = keep(case.label, outcome)
    return "\n".join(
        [f"{case.label}: {outcome.why}", outcome.tail(), *notes, f"again: {outcome.again()}", f"kept: {shown(kept)}"]
    )


def check(case: Case) -> Outcome:
    """Runs the case, as the test that it is."""
    outcome = attempt(case, case.command, case.limit, log_name(case.name))
    if outcome.skipped:
        pytest.skip(outcome.reason())
    if not outcome.passed:
        pytest.fail(report(case, outcome), pytrace=False)
    return outcome
