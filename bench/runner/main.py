# SPDX-License-Identifier: MIT
"""Plans, builds, measures in rounds, reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from . import compare, drawings, machine, publish, report, text, verdicts
from .compiler import BUILDS, BUILT, ROOT, BuildError, Compiler
from .measure import measure_all, run_job
from .model import Job, Plan, Suite
from .options import chosen, parse
from .results import BadFolder, RawFile, pack, read_run, run_paths, write_absent, write_facts
from .suites import SUITES
from .suites.boxroot import functional

MADE_HERE = BUILT / "results"
REPORT, RECORDED = BUILT / "report" / "index.html", BUILT / "report" / "recorded.html"


class Refused(Exception):
    pass


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def find_prefix(wanted: str | None) -> Path:
    if wanted and Path(wanted, "bin").is_dir():
        return Path(wanted)
    done = subprocess.run([ROOT / "tools" / "toolchain", wanted or "--default"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise BuildError(f"no OCaml compiler {wanted or ''}: pass --ocaml PREFIX")
    return Path(done.stdout.strip())


def output_folder(options: Namespace, suite: Suite, version: str, facts: dict[str, str]) -> Path:
    above = publish.RESULTS if options.record else MADE_HERE
    return options.out or above / suite.name / version / machine.short_name(facts)


def begin(out: Path) -> None:
    """Empties the folder of an earlier run."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("raw.csv", "absent.csv", "series.csv"):
        (out / name).unlink(missing_ok=True)


def measure(options: Namespace, suite: Suite) -> int:
    compiler = Compiler(find_prefix(options.ocaml))
    facts = machine.facts(compiler, options.mode)
    if options.record and not options.anyway and (why := machine.warnings(facts)):
        raise Refused(f"not recorded: {'; '.join(why)} (--anyway records nevertheless, and says so)")
    plan: Plan = suite.prepare(options, compiler, find_prefix(options.ocaml), say)
    for reason in dict.fromkeys(
        f"{a.workload} with {a.implementation}: {a.why}" for a in plan.absent if "OCaml" not in a.why[:5]
    ):
        say(reason)
    if options.build_only or not plan.jobs:
        return 0 if plan.jobs else 1

    out = output_folder(options, suite, compiler.version, facts)
    facts |= plan.facts
    begin(out)
    write_facts(out / "facts.json", {**facts, "complete": "no"})
    raw, others = RawFile(out / "raw.csv"), machine.Others()

    def run(job: Job, n: int):
        return run_job(
            job, plan.programs[job.program], [a.format(**plan.arguments) for a in job.case.args], n, out / "series.csv"
        )

    try:
        outcome = measure_all(plan.jobs, options.rounds, run, raw.append)
    finally:
        raw.close()
    write_absent(out / "absent.csv", [*plan.absent, *outcome.absent])
    for job, why in outcome.failed:
        say(f"{' '.join(part for part in job.key if part)} failed: {why}")
    facts |= {"load after": machine.load(), "others during": f"{others.share():.0%}"}
    write_facts(out / "facts.json", {**facts, "rounds": str(read_run(out).results.rounds())})
    if options.record:
        out = pack(out)
    return tell(options, suite, out, outcome.failed)


def tell(options: Namespace, suite: Suite, out: Path, failed: list[tuple[Job, str]]) -> int:
    run = read_run(out)
    print(f"OCaml {run.version}, commit {run.facts['commit']}. Medians; ratios to {suite.base_title}.")
    print(text.terminal(run.results, suite, shutil.get_terminal_size((160, 40)).columns))
    checked, missing = (of(suite, run.results, run.version) for of in (verdicts.check, verdicts.unmeasured))
    print("\nTargets:", *verdicts.lines(checked, missing), sep="\n  ", flush=True)
    for warning in machine.warnings(run.facts):
        say(f"not for the record: {warning}")
    say(f"figures: {os.path.relpath(out)}")
    write_report([out] if options.out else [publish.RESULTS] if options.record else [MADE_HERE], REPORT)
    return 1 if any(j.implementation in suite.must_succeed for j, _ in failed) else 0


def write_report(folders: list[Path], path: Path) -> None:
    """Of these runs, in the order of their suites; folders above them stand for all runs in them."""
    found = dict.fromkeys(path.resolve() for folder in folders for path in run_paths(folder))
    runs = [read_run(path) for path in found if path.is_file() or (path / "facts.json").exists()]
    if not runs:
        raise BadFolder(f"no results in {', '.join(map(str, folders))}")
    order = list(SUITES.values())
    pairs = sorted(
        ((compare.suite_of(r), r) for r in runs), key=lambda p: (order.index(p[0]), publish.version_key(p[1]))
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.page(pairs, drawings.with_library(drawings.LIBRARY)))
    say(f"report: {os.path.relpath(path)}")


def listing() -> None:
    for suite in SUITES.values():
        for title, table in (("workloads", suite.workloads), ("implementations", suite.implementations)):
            print(f"{suite.title}, {title}:", *(f"  {x.name:<23}{x.note}" for x in table.values()), sep="\n")
    print("Boxroot, builds:", *(f"  {b.name:<23}{b.note}" for b in BUILDS.values()), sep="\n")


def main() -> int:
    options = parse()
    try:
        if options.list:
            listing()
            return 0
        if options.publish:
            return publish.command(options.check, options.release)
        if options.report is not None:
            write_report(options.report or [publish.RESULTS], options.out or (REPORT if options.report else RECORDED))
            return 0
        if options.compare:
            return compare.command(*options.compare)
        if options.check_rivals:
            return functional.command(
                Compiler(find_prefix(options.ocaml)), chosen(options.impl, SUITES["boxroot"].implementations)
            )
        return measure(options, SUITES[options.suite])
    except (BuildError, BadFolder, Refused, publish.PublishError) as error:
        say(f"bench/run: {error}")
        return 2
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted")
        return 130
