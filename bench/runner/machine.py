# SPDX-License-Identifier: MIT
"""What a reader must know about the machine and the software to judge a report, and whether the machine was quiet."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import time
from pathlib import Path

from .compiler import OCAML_FLAGS, ROOT, Compiler

BUSY_LOAD = 0.5  # per core
BUSY_SHARE = 0.10  # of all processors, used by other programs
WRITTEN = (
    "bench/results",
    "docs/measured",
    "docs/guide/regions.md",
    "docs/guide/hashcons.md",
    "README.md",
)  # from measurements


def first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        return (done.stdout.strip().splitlines() or [""])[0] if done.returncode == 0 else ""
    except OSError:
        return ""


def read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def field(path: str, key: str) -> str:
    return next((line.split(":", 1)[1].strip() for line in read(path).splitlines() if line.startswith(key)), "")


def chosen_of(path: str) -> str:
    """The word in brackets."""
    text = read(path)
    return text[text.find("[") + 1 : text.find("]")] if "[" in text else text


def available_gigabytes() -> float:
    kilobytes = field("/proc/meminfo", "MemAvailable").split()
    return int(kilobytes[0]) / 1e6 if kilobytes else float("inf")


def load() -> str:
    return f"{os.getloadavg()[0]:.2f}"


class Others:
    """The share of all processors that other programs use, from now on: what the kernel counts less our own."""

    def __init__(self) -> None:
        self.start, self.begin = self._seconds(), time.monotonic()

    @staticmethod
    def _seconds() -> float:
        ticks = [int(n) for n in read("/proc/stat").splitlines()[0].split()[1:9]] if read("/proc/stat") else [0] * 8
        everybody = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # less idle and waiting
        ours = sum(
            u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )
        return everybody - ours

    def share(self) -> float:
        elapsed = (time.monotonic() - self.begin) * (os.cpu_count() or 1)
        return max(0.0, (self._seconds() - self.start) / elapsed) if elapsed else 0.0


def others_now(seconds: float = 2.0) -> str:
    others = Others()
    time.sleep(seconds)
    return f"{others.share():.0%}"


def short_name(facts: dict[str, str]) -> str:
    """Of the machine, for a folder: the processor and the number of its cores."""
    name = re.sub(r"\b(cpu|processor|with|graphics)\b.*|\(r\)|\(tm\)", "", facts.get("processor", ""), flags=re.I)
    return re.sub(r"[^a-z0-9]+", "-", f"{name} {facts.get('cores', '')}".lower()).strip("-") or "unknown"


def readable(facts: dict[str, str]) -> str:
    """The same, to be read."""
    name = re.sub(r"\b(cpu|processor|with|graphics)\b.*|\(r\)|\(tm\)", "", facts.get("processor", ""), flags=re.I)
    cores = facts.get("cores", "")
    return " ".join([*name.split(), *([f"({cores} cores)"] if cores else [])]) or "unknown machine"


def uncommitted() -> bool:
    return bool(first_line(["git", "status", "--porcelain", "--", ".", *(f":!{path}" for path in WRITTEN)]))


def warnings(facts: dict[str, str]) -> list[str]:
    """Why the figures of a run are not for the record."""
    out = []
    if "uncommitted" in facts.get("commit", ""):
        out.append("the tree had uncommitted changes")
    if "others before" in facts:
        for when, key in (("before", "others before"), ("during", "others during")):
            if (share := facts.get(key)) and float(share.rstrip("%")) / 100 > BUSY_SHARE:
                out.append(f"other programs used {share} of the processors {when} the run")
    elif float(facts.get("load before") or 0) > BUSY_LOAD * int(facts.get("cores") or 1):
        out.append(f"the machine was busy: load {facts['load before']} on {facts['cores']} cores before the run")
    if facts.get("complete") == "no":
        out.append("the run was interrupted")
    return out


def is_for_the_record(facts: dict[str, str]) -> bool:
    return not warnings(facts)


def facts(compiler: Compiler, mode: str) -> dict[str, str]:
    commit = first_line(["git", "rev-parse", "--short=12", "HEAD"]) or "none"
    memory = field("/proc/meminfo", "MemTotal").split()
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "mode": mode,
        "commit": commit + (", with uncommitted changes" if uncommitted() else ""),
        "OCaml": compiler.version + (" (flambda)" if compiler.flambda else "") + ", flags " + " ".join(OCAML_FLAGS),
        "processor": field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[0]) / 1e6:.0f} GB" if memory else "",
        "kernel": f"{platform.system()} {platform.release()}",
        "transparent huge pages": chosen_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "frequency governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not visible",
        "load before": load(),
        "others before": others_now(),
    }
