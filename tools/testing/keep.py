# SPDX-License-Identifier: MIT
"""Keeps what a test that failed leaves behind, so that the failure can be looked into when the run is long over."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from testing.run import OUT, ROOT, Outcome, shown

FAILURES = OUT / "stress-failures"
CORES = 5  # files kept at most; the first failures say most


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout


def _free(name: str) -> Path:
    FAILURES.mkdir(parents=True, exist_ok=True)
    stem, k = re.sub(r"[^A-Za-z0-9.+_-]+", "-", name).strip("-"), 1
    while True:
        try:
            (FAILURES / f"{stem}.{k}").mkdir()
            return FAILURES / f"{stem}.{k}"
        except FileExistsError:
            k += 1


def keep(name: str, outcome: Outcome, notes: Iterable[str] = ()) -> Path:
    """A folder with `log`; `command`, which repeats the run, seed included; `about`: test, binary, time, commit,
    machine; core files."""
    folder = _free(name)
    if outcome.log.exists():
        shutil.copy(outcome.log, folder / "log")
    (folder / "command").write_text(outcome.again() + "\n")
    names = [word for word in outcome.command if "/" in word and (outcome.folder / word).is_file()]
    program = (outcome.folder / (names[0] if names else outcome.command[0])).resolve()
    about = [
        f"test {name}",
        f"binary {shown(program)}",
        f"ended {outcome.why}, after {outcome.seconds:.1f} s",
        *notes,
        time.strftime("%Y-%m-%d %H:%M:%S %z"),
        f"commit {_git('rev-parse', 'HEAD').strip() or 'unknown'}",
        *(f"changed {line}" for line in _git("status", "--short").splitlines()),
        " ".join(platform.uname()),
        f"{os.cpu_count()} processors, load {' '.join(f'{load:.1f}' for load in os.getloadavg())}",
    ]
    (folder / "about").write_text("\n".join(about) + "\n")
    cores = sorted(outcome.folder.glob("core*"))
    for core in cores:
        if len(list(FAILURES.glob("*/core*"))) < CORES:
            shutil.move(core, folder / core.name)
            if program.is_file():
                shutil.copy(program, folder / program.name)
        else:
            core.unlink()
    return folder
