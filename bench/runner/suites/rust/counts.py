# SPDX-License-Identifier: MIT
"""Instruction counts by callgrind: of the whole program, or of what lies between two calls of `Bench.mark`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

Rows = list[tuple[str, float, str]]
MARK = "bench_mark"


def counted(program: Path, args: list[str], timeout: float, out: Path) -> str:
    """Runs the program. At each mark, what was counted since the last goes to a file of its own: OUT.1, OUT.2, …"""
    command = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}", program, *args]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=False, timeout=timeout)
    return done.stdout.decode()


def total(path: Path) -> int:
    found = re.search(r"^totals: (\d+)$", path.read_text(), re.M)
    if not found:
        raise RuntimeError(f"{path.name} has no total")
    return int(found[1])


def between_marks(program: Path, args: list[str], timeout: float, sink=None) -> Rows:
    """Each line of the program tells how many operations lay between the last two marks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        lines = [line.split("\t") for line in counted(program, args, timeout * 10, out).splitlines()]
        return [
            (name, total(out.with_name(f"out.{2 * at + 2}")) / float(operations), "instructions")
            for at, (name, operations, _) in enumerate(lines)
        ]


def of_all(program: Path, args: list[str], timeout: float, sink=None) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        counted(program, args, timeout * 10, out)
        return [("all", total(out), "instructions")]
