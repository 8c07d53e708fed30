# SPDX-License-Identifier: MIT
"""What a reader must know about the machine and the software to judge a report."""
from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

from .build import OCAML_FLAGS, ROOT


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


def load() -> str:
    return "%.2f" % os.getloadavg()[0]


def c_compilers(compiler, builds: list[str]) -> dict[str, str]:
    """The C compiler with its version, and the whole command line, of each build."""
    commands = {b: compiler.c_command(b) for b in builds}
    return {f"C code, build {b}": first_line([c[0], "--version"]) + ": " + " ".join(c) for b, c in commands.items()}


def facts(compiler, mode: str, builds: list[str]) -> dict[str, str]:
    commit = first_line(["git", "rev-parse", "--short=12", "HEAD"]) or "none"
    written = [":!bench/results", ":!README.md"]  # from measurements
    if first_line(["git", "status", "--porcelain", "--", ".", *written]):
        commit += ", with uncommitted changes"
    memory = field("/proc/meminfo", "MemTotal").split()
    huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "mode": mode,
        "commit": commit,
        "OCaml": compiler.version + (" (flambda)" if compiler.flambda else "") + ", flags " + " ".join(OCAML_FLAGS),
        **c_compilers(compiler, builds),
        "processor": field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[0]) / 1e6:.0f} GB" if memory else "",
        "kernel": f"{platform.system()} {platform.release()}",
        "transparent huge pages": huge_pages[huge_pages.find("[") + 1:huge_pages.find("]")] if "[" in huge_pages else huge_pages,
        "frequency governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not visible",
        "load before": load(),
    }
