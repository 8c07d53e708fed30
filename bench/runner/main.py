# SPDX-License-Identifier: MIT
"""The command line: plan, build, measure in rounds, report."""
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import build, fetch, machine, report, targets
from .measure import Job, Progress, Results, run_job
from .suite import IMPLEMENTATIONS, OURS, RIVAL, WORKLOADS

ROUNDS = {"quick": 5, "full": 7}
BUDGET = {"quick": 215.0, "full": float("inf")}  # seconds of measuring; the first round always runs to its end


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="bench", description="Benchmarks of Boxroot and its rivals. How to read and extend them: bench/README.md.")
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="quick", help="under five minutes (default)")
    mode.add_argument("--full", dest="mode", action="store_const", const="full", help="for the record; an hour or more")
    p.add_argument("--ocaml", metavar="PREFIX|VERSION", help="compiler to use (default: that of tools/toolchain --default)")
    p.add_argument("--only", metavar="WORKLOADS", help="comma-separated; see --list")
    p.add_argument("--impl", metavar="IMPLEMENTATIONS", help="comma-separated; see --list")
    p.add_argument("--case", metavar="TEXT", help="only cases whose label contains TEXT")
    p.add_argument("--rounds", type=int, help=f"repeats of everything ({ROUNDS['quick']}, with --full {ROUNDS['full']})")
    p.add_argument("--budget", type=float, metavar="SECONDS", help="begin no repeat that would end later than this")
    p.add_argument("--out", type=Path, metavar="DIR", help="where the report goes (default: _build/bench/report/ocaml-VERSION)")
    p.add_argument("--build-dir", type=Path, metavar="DIR", help="(default: _build/bench/VERSION)")
    p.add_argument("--build-only", action="store_true")
    p.add_argument("--check-targets", action="store_true", help="exit code 1 when a target measured in this run is missed")
    p.add_argument("--no-plot", action="store_true")
    p.add_argument("--list", action="store_true", help="list workloads and implementations")
    return p.parse_args()


def find_prefix(wanted: str | None) -> Path:
    if wanted and Path(wanted, "bin").is_dir():
        return Path(wanted)
    command = [build.ROOT / "tools" / "toolchain", wanted or "--default"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise build.BuildError("no OCaml compiler: pass --ocaml PREFIX")
    return Path(done.stdout.strip())


def chosen(names: str | None, table: dict) -> set[str]:
    picked = set(names.split(",")) if names else set(table)
    if unknown := picked - set(table):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; see --list")
    return picked


def plan(options, ocaml5: bool) -> list[Job]:
    workloads, implementations = chosen(options.only, WORKLOADS), chosen(options.impl, IMPLEMENTATIONS)
    return [Job(w, c, i) for w in WORKLOADS.values() if w.name in workloads
            for c in w.cases if options.mode in c.modes and (options.case or "") in c.label
            if ocaml5 or not c.ocaml5_only
            for i in c.implementations if i in implementations and (ocaml5 or not IMPLEMENTATIONS[i].ocaml5_only)]


def build_all(jobs: list[Job], compiler) -> tuple[dict, list[str]]:
    """Programs by (source, implementation), and why the others are missing."""
    wanted = {(j.workload.source, j.implementation): j for j in jobs}
    programs, failures = {}, []
    progress = Progress(len(wanted), sys.stderr)

    def one(job):
        return build.program(job.workload, IMPLEMENTATIONS[job.implementation], compiler)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for key, future in [(k, pool.submit(one, j)) for k, j in wanted.items()]:
            try:
                programs[key] = future.result()
            except (build.BuildError, fetch.FetchError) as error:
                failures.append(f"{key[0]} with {key[1]} was not built: {error}")
            progress.advance(1)
            progress.show(f"building {key[0]} with {key[1]}")
    progress.clear()
    return programs, failures


def measure_all(jobs: list[Job], programs: dict, text: Path, options) -> Results:
    """Rounds over all jobs. Within a round the implementations of a case follow each other, in turn forwards and backwards."""
    results = Results()
    rounds = options.rounds or ROUNDS[options.mode]
    budget = options.budget or BUDGET[options.mode]
    groups: dict = {}
    for job in jobs:
        if (job.workload.source, job.implementation) in programs:
            groups.setdefault((job.workload.name, job.case.label), []).append(job)
    cost = {j: j.case.seconds for g in groups.values() for j in g}
    planned = sum(c * (1 if j.case.once else rounds) for j, c in cost.items())
    progress = Progress(min(planned, budget), sys.stderr)
    start = time.monotonic()
    failed: set[Job] = set()
    for round_number in range(rounds):
        for group in groups.values():
            now = [j for j in group if j not in failed and not (round_number and j.case.once)]
            if round_number and time.monotonic() - start + sum(cost[j] for j in now) > budget:
                continue
            for job in now if round_number % 2 == 0 else reversed(now):
                progress.show(f"round {round_number + 1}: {job.workload.name} {job.case.label} {job.implementation}")
                begin = time.monotonic()
                try:
                    args = [a.format(text=text, cores=os.cpu_count()) for a in job.case.args]
                    results.add(run_job(job, programs[job.workload.source, job.implementation], args, round_number))
                except RuntimeError as error:
                    failed.add(job)
                    results.failures.append((job, str(error)))
                progress.advance(job.case.seconds)
                cost[job] = time.monotonic() - begin
    progress.clear()
    return results


def main() -> int:
    options = arguments()
    if options.list:
        print("workloads:", *(f"  {w.name:<14}{w.note}" for w in WORKLOADS.values()), sep="\n")
        print("implementations:", *(f"  {i.name:<14}{i.note}" for i in IMPLEMENTATIONS.values()), sep="\n")
        return 0
    try:
        compiler = build.Compiler(find_prefix(options.ocaml), options.build_dir)
    except build.BuildError as error:
        say(str(error))
        return 1
    cache = build.ROOT / "_build" / "bench"
    facts = machine.facts(compiler, options.mode)
    jobs = plan(options, compiler.ocaml5)
    if not shutil.which("valgrind") and any(j.workload.measure for j in jobs):
        say("no instruction counts: valgrind is missing")
        jobs = [j for j in jobs if not j.workload.measure]
    programs, failures = build_all(jobs, compiler)
    if options.build_only or not programs:
        for f in failures:
            say(f)
        return 1 if failures else 0
    text = fetch.text(cache / "text", compiler.where, say) if any(j.workload.name == "index" for j in jobs) else None
    results = measure_all(jobs, programs, text, options)
    failures += [f"{j.workload.name} {j.case.label} with {j.implementation} failed: {why}" for j, why in results.failures]
    facts["load after"] = machine.load()

    verdicts = targets.check(results, compiler.ocaml5)
    print(f"OCaml {compiler.version}, commit {facts['commit']}. Median, spread, ratio to {RIVAL}.")
    print(report.terminal(report.tables(results), shutil.get_terminal_size((160, 40)).columns))
    target_lines = targets.lines(results, compiler.ocaml5)
    print("\nTargets:", *target_lines, sep="\n  ", flush=True)

    out = options.out or cache / "report" / f"ocaml-{compiler.version}"
    out.mkdir(parents=True, exist_ok=True)
    report.write_raw(out / "raw.csv", results)
    plots = []
    if options.mode == "full" and not options.no_plot and (python := fetch.matplotlib_python(cache, say)):
        title = f"OCaml {compiler.version}, {facts['processor']}, {facts['date']}"
        drawn = subprocess.run([python, Path(__file__).with_name("plot.py"), out / "raw.csv", out / "ratios.svg", title])
        plots = ["ratios.svg"] if drawn.returncode == 0 else []
    (out / "report.md").write_text(report.markdown(results, facts, target_lines, plots, failures))
    for f in failures:
        say(f)
    say(f"report: {os.path.relpath(out)}/report.md")
    missed = options.check_targets and any(v[1] > v[2] for v in verdicts)
    return 1 if missed or any(j.implementation == OURS for j, _ in results.failures) else 0
