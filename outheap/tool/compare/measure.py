# SPDX-License-Identifier: MIT
"""Rounds in which both programs run, and what is measured in them."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from compare import WAYS, Wrong, curves, names_of, progress
from compare import pauses as events

NO_SETTINGS = "default"  # of --settings
COUNTERS = ("minor_collections", "major_collections", "compactions")


def own_peak() -> float:
    """Of this process, in the unit of ru_maxrss: the system counts a process's memory from before it becomes another
    program, when it is a copy of this one."""
    with contextlib.suppress(OSError, IndexError):
        return float(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@dataclass
class Sample:
    figures: dict[str, float]
    output: str  # digest
    code: int
    lost: bool = False  # events
    curve: curves.Curve = field(default_factory=list)


def follow(
    process: subprocess.Popen, reader: events.Reader | curves.Reader | None
) -> tuple[int, resource.struct_rusage]:
    """Waits for the program, and reads its events or its memory meanwhile."""
    while reader is not None:
        reader.poll()
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            reader.poll()
            return status, usage
        time.sleep(0.005)
    return os.wait4(process.pid, 0)[1:]


def run(way: str, words: list[str], options: argparse.Namespace, folder: Path, kind: str) -> Sample:
    settings = os.environ.copy()
    reader: events.Reader | None = None
    looks: curves.Reader | None = None
    if kind == "paused":
        places = Path(tempfile.mkdtemp(dir=folder))
        settings.update(events.settings(places, settings))
        reader = events.Reader(places)
    params = settings.get("OCAMLRUNPARAM", "")
    settings["OCAMLRUNPARAM"] = f"{params},v=0x400" if params else "v=0x400"
    given = options.outheap if way == "variant" else options.settings
    if given:
        settings["OUTHEAP"] = "" if given == NO_SETTINGS else given
    errors, output = folder / "errors", folder / f"output-{way}-latest"
    with errors.open("wb") as err, output.open("wb") as out, open(options.input or os.devnull, "rb") as inp:
        begin = time.perf_counter()
        process = subprocess.Popen(words, env=settings, stdin=inp, stdout=out, stderr=err)
        timer = threading.Timer(options.timeout, lambda: os.kill(process.pid, signal.SIGKILL))
        timer.start()
        if kind == "resident":
            looks = curves.Reader(process.pid)
        try:
            status, usage = follow(process, reader or looks)
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    text = errors.read_text(errors="replace")
    with contextlib.suppress(OSError):
        errors.replace(folder / f"errors-{way}")
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        why = f"after {options.timeout:g} s (--timeout)" if seconds >= options.timeout else f"by signal {name}"
        name = names_of(options.settings)[way]
        raise Wrong("\n".join([f"{name} ended {why}: {' '.join(words)}", *text.splitlines()[-10:]]))
    digest = hashlib.sha256()
    with output.open("rb") as out:
        for part in iter(lambda: out.read(1 << 20), b""):
            digest.update(part)
    if not (folder / f"output-{way}").exists():
        shutil.copy(output, folder / f"output-{way}")
    sample = Sample({}, digest.hexdigest(), process.returncode)
    if looks is not None:
        sample.curve, sample.figures = looks.curve, curves.figures(looks.curve)
        return sample
    if reader is not None:
        if reader.processes:
            sample.figures = events.figures(reader.pauses)
        sample.lost = reader.lost > 0
        reader.close()
        return sample
    user, system = usage.ru_utime, usage.ru_stime  # of all threads
    sample.figures = {"time": seconds, "processor time": user + system, "user time": user, "system time": system}
    peak, unit = usage.ru_maxrss, 1024 if sys.platform == "darwin" else 1
    if peak > own_peak() * 1.2:
        sample.figures["peak memory"] = peak / unit
    for name in COUNTERS:
        found = re.findall(rf"^{name}: (\d+)", text, re.MULTILINE)
        if found:
            sample.figures[name.replace("_", " ")] = float(found[-1])
    return sample


@dataclass
class Round:
    kind: str  # warm-up, timed, paused, resident
    samples: dict[str, Sample]


def measure(words: dict[str, list[str]], options: argparse.Namespace, folder: Path) -> list[Round]:
    kinds = ["warm-up"] + ["timed"] * options.rounds + ["paused"] * options.pauses + ["resident"] * options.memory
    rounds: list[Round] = []
    began = time.monotonic()
    for number, kind in enumerate(kinds):
        left = ""
        if rounds:
            seconds = (time.monotonic() - began) / number * (len(kinds) - number)
            left = f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
        progress.show(f"round {number} of {len(kinds) - 1} ({kind}){left}")
        order = WAYS if number % 2 else WAYS[::-1]
        samples = {way: run(way, words[way], options, folder, kind) for way in order}
        rounds.append(Round(kind, samples))
        if not number and samples["stock"].code != samples["variant"].code:
            break  # the difference will be reported
    progress.end()
    return rounds
