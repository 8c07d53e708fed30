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

from . import build, fetch, machine, publish, report, targets
from .measure import Job, Progress, Results, run_job
from .suite import IMPLEMENTATIONS, OURS, RIVAL, WORKLOADS

ROUNDS = {"quick": 5, "full": 7, "grid": 3}
FOR_EVER = float("inf")
BUDGET = {"quick": 330.0, "full": FOR_EVER, "grid": FOR_EVER}  # seconds of measuring; the first round always runs to its end


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="bench", description="Benchmarks of Boxroot and its rivals. How to read and extend them: bench/README.md.",
        epilog="bench publish [--check]: writes the figures of bench/results/boxroot-* into README.md")
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="quick", help="under eight minutes (default)")
    mode.add_argument("--full", dest="mode", action="store_const", const="full", help="for the record; some hours")
    mode.add_argument("--grid", dest="mode", action="store_const", const="grid",
                      help="the GC's pace, over a grid of settings; half an hour")
    p.add_argument("--ocaml", metavar="PREFIX|VERSION", help="compiler to use (default: that of tools/toolchain --default)")
    p.add_argument("--only", metavar="WORKLOADS", help="comma-separated; see --list")
    p.add_argument("--impl", metavar="IMPLEMENTATIONS", help="comma-separated; see --list")
    p.add_argument("--build", metavar="BUILDS",
                   help="comma-separated; every case in these builds, instead of those that the case names; see --list")
    p.add_argument("--case", metavar="TEXT", help="only cases whose label contains TEXT")
    p.add_argument("--rounds", type=int,
                   help=f"repeats of everything ({ROUNDS['quick']}; with --full {ROUNDS['full']}, with --grid {ROUNDS['grid']})")
    p.add_argument("--budget", type=float, metavar="SECONDS", help="begin no repeat that would end later than this")
    where = p.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="DIR",
                       help="where the report goes (default: _build/bench/report/ocaml-VERSION, with --grid pacing-VERSION)")
    where.add_argument("--record", action="store_true",
                       help="put it into bench/results/boxroot-VERSION (with --grid pacing-VERSION), where `publish` looks")
    p.add_argument("--build-dir", type=Path, metavar="DIR", help="(default: _build/bench/VERSION)")
    p.add_argument("--build-only", action="store_true")
    p.add_argument("--check-targets", action="store_true", help="exit code 1 when a target measured in this run is missed")
    p.add_argument("--no-plot", action="store_true")
    p.add_argument("--list", action="store_true", help="list workloads, implementations and builds")
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
    builds = chosen(options.build, build.BUILDS) if options.build else None
    jobs = [Job(w, c, i, b) for w in WORKLOADS.values() if w.name in workloads
            for c in w.cases if options.mode in c.modes and (options.case or "") in c.label
            if ocaml5 or not c.ocaml5_only
            for b in build.BUILDS if b in (builds or c.builds)
            for i in c.implementations if i in implementations and (ocaml5 or not IMPLEMENTATIONS[i].ocaml5_only)]
    first = {(j.workload.name, j.label, j.implementation): j for j in reversed(jobs)}  # with --build, cases can fall together
    return list(first.values())[::-1]


def build_all(jobs: list[Job], compiler) -> tuple[dict, list[str]]:
    """Programs by (source, implementation), and why the others are missing."""
    wanted = {j.program: j for j in jobs}
    programs, failures = {}, []
    progress = Progress(len(wanted), sys.stderr)

    def one(job):
        return build.program(job.workload, IMPLEMENTATIONS[job.implementation], compiler, job.build)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for key, future in [(k, pool.submit(one, j)) for k, j in wanted.items()]:
            try:
                programs[key] = future.result()
            except (build.BuildError, fetch.FetchError) as error:
                failures.append(f"{key[0]} with {key[1]} ({key[2]}) was not built: {error}")
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
        if job.program in programs:
            groups.setdefault((job.workload.name, job.label), []).append(job)
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
                progress.show(f"round {round_number + 1}: {job.workload.name} {job.label} {job.implementation}")
                begin = time.monotonic()
                try:
                    args = [a.format(text=text, cores=os.cpu_count()) for a in job.case.args]
                    results.add(run_job(job, programs[job.program], args, round_number))
                except RuntimeError as error:
                    failed.add(job)
                    results.failures.append((job, str(error)))
                progress.advance(job.case.seconds)
                cost[job] = time.monotonic() - begin
    progress.clear()
    return results


def output_folder(options, version: str) -> Path:
    grid = options.mode == "grid"
    if options.record:
        return publish.RESULTS / f"{publish.GRID if grid else publish.PRODUCT}-{version}"
    return options.out or build.ROOT / "_build" / "bench" / "report" / f"{publish.GRID if grid else 'ocaml'}-{version}"


def without_what_is_missing(jobs: list[Job], compiler, failures: list[str]) -> list[Job]:
    for b in dict.fromkeys(j.build for j in jobs):
        if not compiler.can(b):
            failures.append(f"nothing was measured in the build {b}: {compiler.c_command(b)[0]} is missing")
            jobs = [j for j in jobs if j.build != b]
    if not shutil.which("valgrind") and any(j.workload.measure for j in jobs):
        failures.append("no instruction counts: valgrind is missing")
        jobs = [j for j in jobs if not j.workload.measure]
    return jobs


def main() -> int:
    if sys.argv[1:2] == ["publish"]:
        return publish.main(sys.argv[2:])
    options = arguments()
    if options.list:
        for title, table in (("workloads", WORKLOADS), ("implementations", IMPLEMENTATIONS), ("builds", build.BUILDS)):
            print(f"{title}:", *(f"  {x.name:<14}{x.note}" for x in table.values()), sep="\n")
        return 0
    try:
        compiler = build.Compiler(find_prefix(options.ocaml), options.build_dir)
    except build.BuildError as error:
        say(str(error))
        return 1
    cache = build.ROOT / "_build" / "bench"
    failures: list[str] = []
    jobs = without_what_is_missing(plan(options, compiler.ocaml5), compiler, failures)
    facts = machine.facts(compiler, options.mode, list(dict.fromkeys(j.build for j in jobs)))
    programs, not_built = build_all(jobs, compiler)
    failures += not_built
    if options.build_only or not programs:
        for f in failures:
            say(f)
        return 1 if failures else 0
    text = fetch.text(cache / "text", compiler.where, say) if any(j.workload.name == "index" for j in jobs) else None
    results = measure_all(jobs, programs, text, options)
    failures += [f"{j.workload.name} {j.label} with {j.implementation} failed: {why}" for j, why in results.failures]
    facts["load after"] = machine.load()
    facts["rounds"] = str(results.rounds())

    verdicts = targets.check(results, compiler.ocaml5)
    print(f"OCaml {compiler.version}, commit {facts['commit']}. Median, spread, ratio to {RIVAL}.")
    print(report.terminal(report.tables(results), shutil.get_terminal_size((160, 40)).columns))
    if options.mode == "grid":
        title = f"Ratios to {RIVAL} over the grid"
        target_lines = ["\t".join(row) for row in [publish.GRID_HEADER, *publish.grid(results)]]
    else:
        title, target_lines = "Targets", targets.lines(results, compiler.ocaml5)
    print(f"\n{title}:", *target_lines, sep="\n  ", flush=True)

    out = output_folder(options, compiler.version)
    out.mkdir(parents=True, exist_ok=True)
    report.write_raw(out / "raw.csv", results)
    report.write_facts(out / "facts.json", {**facts, "left out": "; ".join(f.splitlines()[0] for f in failures)})
    plots = []
    if options.mode == "full" and not options.no_plot and (python := fetch.matplotlib_python(cache, say)):
        heading = f"OCaml {compiler.version}, {facts['processor']}, {facts['date']}"
        drawn = subprocess.run([python, Path(__file__).with_name("plot.py"), out / "raw.csv", out / "ratios.svg", heading])
        plots = ["ratios.svg"] if drawn.returncode == 0 else []
    (out / "report.md").write_text(report.markdown(results, facts, title, target_lines, plots, failures))
    for f in failures:
        say(f)
    say(f"report: {os.path.relpath(out)}/report.md")
    missed = options.check_targets and any(v[1] > v[2] for v in verdicts)
    return 1 if missed or any(j.implementation == OURS for j, _ in results.failures) else 0
