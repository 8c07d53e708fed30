# SPDX-License-Identifier: MIT
"""The functional test that every implementation has to pass: workloads/functional.ml, with each of them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from ... import fetch
from ...compiler import BENCH, BuildError, Compiler
from ...measure import one_line
from ...model import Workload
from . import build
from .suite import SUITE, Implementation

PROGRAM = Workload("functional", "values survive in cells, and are gone when the cells are", (), modules=("cell",))
SEEDS = (1, 2, 3)
STEPS, STEPS_OF_A_DOMAIN = 60_000, 20_000
SECONDS = 300.0


@dataclass(frozen=True)
class Outcome:
    implementation: str
    passed: bool | None  # None: there is nothing to run
    text: str


def run(program, seed: int, steps: int, domains: int = 1) -> str | None:
    """What goes wrong."""
    try:
        done = subprocess.run(
            [program, str(seed), str(steps), str(domains)], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"seed {seed}, {domains} domains: not finished after {SECONDS:g} s"
    if done.returncode == 0:
        return None
    return one_line(done.stderr) or f"seed {seed}, {domains} domains: ended by signal or code {done.returncode}"


def check(i: Implementation, compiler: Compiler, seeds=SEEDS) -> Outcome:
    """A floor, which keeps nothing alive, passes when the test fails: that is what shows that the test can."""
    if not (BENCH / "rivals" / i.adaptors / "cell.ml").exists():
        return Outcome(i.name, None, "has no cells: the workloads that use it check what they get")
    if i.ocaml5_only and not compiler.ocaml5:
        return Outcome(i.name, None, "the collector of OCaml 4.14 visits all roots at once anyhow")
    try:
        program = build.program(PROGRAM, i, compiler)
    except fetch.FetchError as error:
        return Outcome(i.name, None, str(error)[:500])
    except BuildError as error:
        return Outcome(i.name, False, f"was not built: {str(error)[:500]}")
    wrong = [w for seed in seeds if (w := run(program, seed, STEPS))]
    if i.rootless:
        return Outcome(
            i.name,
            len(wrong) == len(seeds),
            "keeps nothing alive, and the test says so"
            if wrong
            else "the test does not see that it keeps nothing alive",
        )
    domains = 1
    if compiler.ocaml5 and not i.one_thread:
        domains = 2
        wrong += [w for seed in seeds if (w := run(program, seed, STEPS_OF_A_DOMAIN, domains))]
    return Outcome(
        i.name,
        not wrong,
        "; ".join(wrong) or f"passes with {len(seeds)} seeds" + (", on one and on two domains" if domains > 1 else ""),
    )


def command(compiler: Compiler, names: set[str]) -> int:
    """Prints a line for each implementation. The exit code is 1 when one fails."""
    failed = False
    for i in (i for i in SUITE.implementations.values() if i.name in names):
        outcome = check(i, compiler)
        verdict = {None: "-", True: "ok", False: "FAILED"}[outcome.passed]
        print(f"{compiler.version}  {outcome.implementation:<22}{verdict:<8}{outcome.text}", flush=True)
        failed |= outcome.passed is False
    return 1 if failed else 0
