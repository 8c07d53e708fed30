# SPDX-License-Identifier: MIT
"""Runs one process and returns its figures, as rows of (name, value, unit). Each function here is the `measure` of some
workload."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ...model import LANE
from . import generate
from .programs import Program

# What would change a rival behind our back.
NOT_INHERITED = (
    "OUTHEAP",
    "OCAMLRUNPARAM",
    "CAMLRUNPARAM",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MALLOC_CONF",
    "COQLIB",
    "COQCORELIB",
    "COQPATH",
)
REPORT_GC = "v=0x400"
COQ_GC = "s=32M,o=120"  # what coqc sets when OCAMLRUNPARAM is not set
SYSTEM_CALLS = ("mmap", "munmap", "mprotect", "madvise", "brk")
SAMPLE_EVERY = 0.01
WORKERS_MEMORY = 4e9  # of eight workers, at most
Rows = list[tuple[str, float, str]]


@dataclass
class Ended:
    output: str
    errors: str
    user: float
    system: float
    wall: float
    resident: float
    samples: list[tuple[float, float]]


# Peak resident memory of each program with its arguments, from its last run.
peaks: dict[tuple, float] = {}


TOUCH = """import mmap, sys
size = int(sys.argv[1])
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_HUGEPAGE)
view = memoryview(memory)
view[::4096] = bytes(size // 4096)
"""


def warm(size: int) -> None:
    """Touches so much memory in huge pages, and frees it, in a process of its own. Virtual machines give free memory
    back to their host, huge pages first; taking it again costs microseconds for each small page, which would be put
    down to whoever asks for huge pages. Memory freed just now is still there."""
    subprocess.run([sys.executable, "-c", TOUCH, str(size // 4096 * 4096)], stderr=subprocess.DEVNULL)


def environment_of(program: Program, extra: dict) -> dict:
    environment = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
    environment |= program.environment | extra
    if program.parameters:  # of what is given twice the last counts
        environment["OCAMLRUNPARAM"] = ",".join(filter(None, (environment.get("OCAMLRUNPARAM"), program.parameters)))
    return environment


def run(
    program: Program,
    arguments: list[str],
    timeout: float,
    extra: dict | None = None,
    before: tuple[str, ...] = (),
    sample: bool = False,
) -> Ended:
    environment = environment_of(program, extra or {})
    samples: list[tuple[float, float]] = []
    page = os.sysconf("SC_PAGE_SIZE")
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        key = (program.folder, *arguments)
        warm(int(min(peaks.get(key, 1500e6) * 1.25, os.sysconf("SC_AVPHYS_PAGES") * page / 2)))
        start = time.monotonic()
        child = subprocess.Popen(
            [*before, *program.command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=program.folder,
            env=environment,
            start_new_session=True,
        )
        late = threading.Timer(timeout, lambda: os.killpg(child.pid, signal.SIGKILL))
        late.start()
        ended = threading.Event()

        def watch() -> None:
            with contextlib.suppress(OSError), open(f"/proc/{child.pid}/statm", "rb", buffering=0) as statm:
                while not ended.wait(SAMPLE_EVERY):  # reading fails once the process has ended
                    statm.seek(0)
                    samples.append((time.monotonic() - start, int(statm.read().split()[1]) * page / 1e6))

        watcher = threading.Thread(target=watch)
        if sample:
            watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        timed_out = not late.is_alive()
        late.cancel()
        ended.set()
        if sample:
            watcher.join()
        peaks[key] = usage.ru_maxrss * 1024
        output.seek(0)
        errors.seek(0)
        result = Ended(
            output.read(), errors.read(), usage.ru_utime, usage.ru_stime, wall, usage.ru_maxrss / 1e3, samples
        )
    if timed_out:
        raise subprocess.TimeoutExpired(program.command, timeout)
    if child.returncode != 0:
        raise RuntimeError(f"exit code {child.returncode}: {(result.errors.strip() or result.output.strip())[-300:]}")
    return result


def table(text: str) -> Rows:
    return [
        (name, float(value), unit)
        for name, value, unit in (line.split("\t") for line in text.splitlines() if "\t" in line)
    ]


def printed(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """What the program prints itself."""
    return table(run(program, arguments, timeout).output)


def printed_by_workers(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """The same for a program with workers, whose memory is not in the peak of the first process."""
    peaks[(program.folder, *arguments)] = WORKERS_MEMORY / 1.25
    return printed(program, arguments, timeout)


def over_time(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """The same, and its resident memory, looked at every 10 ms."""
    ended = run(program, arguments, timeout, sample=True)
    if sink:
        sink.add("resident MB over seconds", ended.samples[:: max(1, len(ended.samples) // 300)])
    mean = sum(mb for _, mb in ended.samples) / max(1, len(ended.samples))
    return table(ended.output) + [("resident: mean over time", mean, "MB"), ("resident: peak", ended.resident, "MB")]


def lanes(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """What it prints itself, and what was done when: lines `lane NAME BEGIN LENGTH`."""
    text = run(program, arguments, timeout).output
    drawn: dict[str, list[tuple[float, float]]] = {}
    for fields in (line.split("\t") for line in text.splitlines() if line.startswith("lane\t")):
        _, name, begin, length = fields
        drawn.setdefault(LANE + name, []).append((float(begin), float(length)))
    if sink:
        for name, stretches in drawn.items():
            sink.add(name, stretches)
    return table("\n".join(line for line in text.splitlines() if not line.startswith("lane\t")))


def system_calls(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """Calls that concern memory, counted by strace."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary"
        run(program, arguments, timeout, before=("strace", "-f", "-c", "-o", str(summary)))
        # % time, seconds, usecs/call, calls, errors (may be empty), syscall
        counts = {
            m[2]: float(m[1])
            for m in re.finditer(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", summary.read_text(), re.M)
        }
    return [(call, counts.get(call, 0.0), "calls") for call in SYSTEM_CALLS] + [
        ("all that concern memory", sum(counts.get(c, 0.0) for c in SYSTEM_CALLS), "calls"),
        ("all", counts.get("total", sum(counts.values())), "calls"),
    ]


def whole(program: Program, arguments: list[str], timeout: float, gc: str = "") -> Rows:
    """Times and memory of a process from start to end; what OCaml's runtime says about its heap at exit is for the raw
    data."""
    ended = run(program, arguments, timeout, {"OCAMLRUNPARAM": f"{gc},{REPORT_GC}" if gc else REPORT_GC})
    said = {m[1]: float(m[2]) for m in re.finditer(r"^(\w+): +(\d+)\b", ended.errors, re.M)}
    rows = [
        ("processor time", ended.user + ended.system, "s"),
        ("user", ended.user, "s"),
        ("system", ended.system, "s"),
        ("wall", ended.wall, "s"),
        ("peak resident", ended.resident, "MB"),
    ]
    if "top_heap_words" in said:
        rows.append(("peak heap", said["top_heap_words"] * 8 / 1e6, "MB"))
    return rows + [
        (f"gc: {name.replace('_', ' ')}", said[name], "")
        for name in ("minor_collections", "major_collections", "promoted_words")
        if name in said
    ]


def process(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    return whole(program, arguments, timeout)


# --- what real programs compile ---------------------------------------------------------------------------------------


def source(program: Program, states: str) -> str:
    path = program.folder / f"parser_{states}.ml"
    if not path.exists():
        generate.write(path, generate.parser(int(states)))
    return path.name


def theory(program: Program, name: str) -> list[str]:
    theories = Path(program.command[program.command.index("-R") + 1])
    return ["-o", str(program.folder / f"{Path(name).name}.vo"), str(theories / f"{name}.v")]


def compile_parser(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    return whole(program, [source(program, arguments[0])], timeout)


def compile_theory(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    return whole(program, theory(program, arguments[0]), timeout, COQ_GC)


ANSWER = "R\n     : Set"


def toplevels(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """Several toplevels of Coq at once, which load a library and then wait: the processor time of them all until they
    have, and the memory that they take together."""
    count, library, gc = int(arguments[0]), *arguments[1:]
    environment = environment_of(program, {"OCAMLRUNPARAM": gc})
    children: list[subprocess.Popen] = []
    warm(int(WORKERS_MEMORY / 8 * count))
    late = threading.Timer(timeout, lambda: [c.kill() for c in children])
    late.start()
    try:
        start = time.monotonic()
        for _ in range(count):
            children.append(
                subprocess.Popen(
                    list(program.command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    cwd=program.folder,
                    env=environment,
                )
            )
            children[-1].stdin.write(f"Require Import {library}.\nCheck R.\n")
            children[-1].stdin.flush()
        said = [loaded(child) for child in children]
        wall = time.monotonic() - start
        if bad := [text for text in said if ANSWER not in text]:
            raise RuntimeError(f"{library} was not loaded: {' / '.join(bad[0].split(chr(10)))[-300:]}")
        ticks = sum(sum(times(child.pid)) for child in children) / os.sysconf("SC_CLK_TCK")
        memory = [rollup(child.pid) for child in children]
    finally:
        late.cancel()
        for child in children:
            child.kill()
            child.communicate()
    return [
        ("processor time", ticks / count, "s"),
        ("wall", wall, "s"),
        ("resident, each", sum(m["Rss"] for m in memory) / count / 1e3, "MB"),
        ("sum of Pss", sum(m["Pss"] for m in memory) / 1e3, "MB"),
    ]


def loaded(child: subprocess.Popen) -> str:
    """What it prints until it answers, or ends."""
    text = ""
    while ANSWER not in text and (line := child.stdout.readline()):
        text += line
    return text


def times(pid: int) -> tuple[int, int]:
    """User and system time, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def rollup(pid: int) -> dict[str, int]:
    """Its memory by kind, in KB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}


def counted(program: Program, arguments: list[str], timeout: float, sink=None) -> Rows:
    """What marking saw in a real program, as a whole and slice by slice: ocamlopt or coq, and its input."""
    slices = {"OUTHEAP": "stats=exit,debug.slices=1"}
    if arguments[0] == "coq":
        text = run(program, theory(program, arguments[1]), timeout, slices | {"OCAMLRUNPARAM": COQ_GC}).errors
    else:
        text = run(program, [source(program, arguments[1])], timeout, slices).errors
    if sink:
        for name, points in by_slice(text).items():
            sink.add(name, points)
    return counts(text)


POINTS = 150  # of a curve, at most; each is the mean of some slices


def by_slice(text: str) -> dict[str, list[tuple[float, float]]]:
    """The lines `outheap: slice SEEN STATIC FOREIGN LINES`: the share of words that were skipped, and cache lines."""
    slices = [[int(n) for n in m] for m in re.findall(r"^outheap: slice (\d+) (\d+) (\d+) (\d+)$", text, re.M)]
    step = -(-len(slices) // POINTS)
    groups = [(i, slices[i : i + step]) for i in range(0, len(slices), step or 1)]
    return {
        "skipped % over slices": [
            (i, 100 * sum(s[1] + s[2] for s in group) / sum(s[0] for s in group)) for i, group in groups
        ],
        "saved lines over slices": [(i, sum(s[3] for s in group) / len(group)) for i, group in groups],
    }


# The adapter to what OUTHEAP=stats=exit prints: the fields of `struct outheap_statistics`, each with a figure before or
# behind it.
COUNTERS = {
    "words_seen": "words seen",
    "words_immediate": "immediate",
    "words_young": "skipped: young",
    "words_static": "skipped: static",
    "words_foreign": "skipped: foreign",
    "lines_saved": "cache lines saved",
}


def counts(text: str) -> Rows:
    found = {}
    for field in COUNTERS:
        name = field.replace("_", "[_ ]")
        if match := re.search(rf"\b{name}\b\W*(\d+)", text) or re.search(rf"(\d+)\W*\b{name}\b", text):
            found[field] = float(match[1])
    if not found.get("words_seen"):
        raise RuntimeError("no counts in the statistics: " + text.strip()[-200:])
    return [(label, found[f], "words" if f != "lines_saved" else "") for f, label in COUNTERS.items() if f in found] + [
        ("skipped: static, share", 100 * found.get("words_static", 0) / found["words_seen"], "%")
    ]
