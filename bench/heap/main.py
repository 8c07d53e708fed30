# SPDX-License-Identifier: MIT
"""The command line: plan, build, measure in rounds, report."""
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from runner import fetch, machine
from runner.build import C_FLAGS, ROOT, BuildError, Compiler
from runner.main import chosen, find_prefix, measure_all, say
from runner.measure import Job, Progress, Results
from runner.report import terminal, write_raw

from . import execute, report, targets
from .programs import Builder
from .rivals import BASE, COUNTING, OURS, RIVALS, Missing, Runtimes
from .suite import WORKLOADS

ROUNDS = {"quick": 3, "full": 5}
BUDGET = {"quick": 330.0, "full": float("inf")}  # seconds of measuring; the first round always runs to its end


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="bench-heap", description="Benchmarks of Outheap and its rivals. How to read and extend them: bench/heap/README.md.")
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="quick", help="about six minutes (default)")
    mode.add_argument("--full", dest="mode", action="store_const", const="full", help="for the record: larger heaps, more cases and rivals; about an hour")
    p.add_argument("--ocaml", metavar="PREFIX|VERSION", help="compiler to use (default: that of tools/toolchain --default)")
    p.add_argument("--only", metavar="WORKLOADS", help="comma-separated; see --list; `words` and `system calls` belong to the workload they count")
    p.add_argument("--impl", metavar="RUNTIMES", help="comma-separated; see --list")
    p.add_argument("--case", metavar="TEXT", help="only cases whose label contains TEXT")
    p.add_argument("--rounds", type=int, help=f"repeats of everything ({ROUNDS['quick']}, with --full {ROUNDS['full']})")
    p.add_argument("--budget", type=float, metavar="SECONDS", help="begin no repeat that would end later than this")
    p.add_argument("--runtimes", type=Path, metavar="DIR", help="a folder with libasmrun_outheap*.a (default: they are built)")
    p.add_argument("--out", type=Path, metavar="DIR", help="where the report goes (default: _build/bench/heap/report/ocaml-VERSION)")
    p.add_argument("--build-only", action="store_true")
    p.add_argument("--check-targets", action="store_true", help="exit code 1 when a target measured in this run is missed")
    p.add_argument("--no-plot", action="store_true")
    p.add_argument("--list", action="store_true", help="list workloads and runtimes")
    return p.parse_args()


def available_gigabytes() -> float:
    kilobytes = machine.field("/proc/meminfo", "MemAvailable").split()
    return int(kilobytes[0]) / 1e6 if kilobytes else float("inf")


def plan(options, version: str, notices: list[str]) -> list[Job]:
    names = {w: {w, w.split(",")[0], *(["compaction"] if w == "system calls" else [])} for w in WORKLOADS}
    wanted = set((options.only or ",".join(w for w in WORKLOADS if "," not in w)).split(","))
    if unknown := wanted - set().union(*names.values()):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; see --list")
    rivals = chosen(options.impl, RIVALS)
    memory, jobs = available_gigabytes(), []
    for workload in (w for w in WORKLOADS.values() if names[w.name] & wanted):
        for case in (c for c in workload.cases if options.mode in c.modes and (options.case or "") in c.label):
            if case.gigabytes > memory:
                notices.append(f"{workload.name} {case.label} needs {case.gigabytes:.1f} GB of memory; {memory:.1f} are free")
                continue
            jobs += [Job(workload, case, r) for r in case.implementations if r in rivals and version.startswith(RIVALS[r].versions)]
    return jobs


def build_all(jobs: list[Job], builder: Builder, notices: list[str]) -> dict:
    """Programs by (source, rival); why others are missing goes to the notices."""
    wanted = dict.fromkeys(j.program for j in jobs)
    programs: dict = {}
    progress = Progress(len(wanted) + 3, sys.stderr)
    progress.show("building the runtimes")
    builder.runtimes.prepare([RIVALS[r] for r in dict.fromkeys(r for _, r, _ in wanted)])
    progress.advance(3)
    absent: dict[str, str] = {}
    for source, rival, build in wanted:
        progress.show(f"building {source} with {rival}")
        try:
            programs[source, rival, build] = builder.program(source, RIVALS[rival])
        except Missing as reason:
            absent[rival] = str(reason)
        except (BuildError, OSError, subprocess.CalledProcessError) as error:
            lines = str(error).strip().splitlines()
            notices.append(f"{source} with {rival} was not built: " + " / ".join(line[:200] for line in [*lines[1:3], *lines[-2:]]))
        progress.advance(1)
    progress.clear()
    notices += [f"`{rival}` is left out: {reason}" for rival, reason in absent.items()]
    return programs


def facts_of(compiler: Compiler, options, builder: Builder) -> dict[str, str]:
    facts = machine.facts(compiler, options.mode, [])
    facts["C compiler"] = machine.first_line([compiler.cc, "--version"]) + ", flags " + " ".join(C_FLAGS)
    defrag = machine.read("/sys/kernel/mm/transparent_hugepage/defrag")
    facts["huge pages, defrag"] = defrag[defrag.find("[") + 1:defrag.find("]")] if "[" in defrag else "not visible"
    facts["C library"] = " ".join(os.confstr("CS_GNU_LIBC_VERSION").split()) if "CS_GNU_LIBC_VERSION" in os.confstr_names else ""
    return facts


def plots(out: Path, title: str) -> list[str]:
    for name in ("ratios.svg", "resident.svg"):
        (out / name).unlink(missing_ok=True)
    if python := fetch.matplotlib_python(ROOT / "_build" / "bench", say):
        subprocess.run([python, Path(__file__).with_name("plot.py"), out, title])
    return [name for name in ("ratios.svg", "resident.svg") if (out / name).exists()]


def main() -> int:
    options = arguments()
    if options.list:
        print("workloads:", *(f"  {w.name:<16}{w.note}" for w in WORKLOADS.values()), sep="\n")
        print("runtimes:", *(f"  {r.name:<16}{r.note}" for r in RIVALS.values()), sep="\n")
        return 0
    notices: list[str] = []
    try:
        prefix = find_prefix(options.ocaml)
        compiler = Compiler(prefix, None)
    except BuildError as error:
        say(str(error))
        return 1
    folder = ROOT / "_build" / "bench" / "heap"
    runtimes = Runtimes(compiler, prefix, folder / compiler.version / "runtimes", options.runtimes)
    builder = Builder(compiler, runtimes, folder / compiler.version)
    jobs = plan(options, compiler.version, notices)
    if not shutil.which("strace"):
        notices.append("system calls are not counted: strace is missing")
        jobs = [j for j in jobs if j.workload.name != "system calls"]
    facts = facts_of(compiler, options, builder)
    programs = build_all(jobs, builder, notices)
    for notice in notices:
        say(notice)
    if options.build_only or not programs:
        return 0 if programs else 1
    if hasattr(builder, "coq") and builder.coq:
        facts["Coq"] = ", ".join((builder.coq / "versions").read_text().splitlines())
    facts["load before"] = machine.load()
    options.rounds, options.budget = options.rounds or ROUNDS[options.mode], options.budget or BUDGET[options.mode]
    results: Results = measure_all(jobs, programs, Path(), options)
    for job, why in results.failures:
        notices.append(f"{job.workload.name} {job.case.label} with {job.implementation} failed: {why}")
        say(notices[-1])
    facts["load after"] = machine.load()

    print(f"OCaml {compiler.version}, commit {facts['commit']}. Median, spread, ratio to {BASE}.")
    print(terminal(report.tables(results), shutil.get_terminal_size((160, 40)).columns))
    target_lines = targets.lines(results, compiler.version)
    print("\nTargets:", *target_lines, sep="\n  ", flush=True)

    out = options.out or folder / "report" / f"ocaml-{compiler.version}"
    out.mkdir(parents=True, exist_ok=True)
    write_raw(out / "raw.csv", results)
    report.write_series(out / "resident.csv", execute.series)
    drawn = [] if options.no_plot else plots(out, f"OCaml {compiler.version}, {facts['processor']}, {facts['date']}")
    (out / "report.md").write_text(report.markdown(results, facts, target_lines, drawn, notices))
    say(f"report: {os.path.relpath(out)}/report.md")
    missed = options.check_targets and any(v[1] > v[2] for v in targets.check(results, compiler.version))
    return 1 if missed or any(j.implementation in (OURS, COUNTING) for j, _ in results.failures) else 0
