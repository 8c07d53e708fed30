# SPDX-License-Identifier: MIT
"""Instruction counts by valgrind's callgrind: the same in every run, on a busy machine too."""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

OPERATIONS = {"create": "pair_batch_create", "delete": "pair_batch_delete", "modify": "pair_batch_modify"}
LOOP, BATCH = "pair_batch_nothing", 1000
WARM, LONG = 20, 120  # batches in the two runs whose difference counts

# Root work is done by functions whose source is the library or the stubs that present its roots to OCaml.
ROOT_SOURCES = ("/boxroot/src/", "/boxroot/include/", "/vendor/boxroot/", "/bench/rivals/")


class Profile:
    """Costs by function: self, and inclusive per caller and callee."""

    def __init__(self, text: str):
        self.self_cost = defaultdict(int)
        self.files = {}
        self.calls = defaultdict(int)
        function = file = callee = None
        after_call = False
        for line in text.splitlines():
            if line.startswith(("fl=", "fi=", "fe=")):
                file = line[3:]
            elif line.startswith("fn="):
                function = line[3:]
                self.files.setdefault(function, file)
            elif line.startswith("cfn="):
                callee = line[4:]
            elif line.startswith("calls="):
                after_call = True
            elif line[:1].isdigit():
                cost = int(line.split()[1])
                if after_call:
                    self.calls[function, callee] += cost
                    after_call = False
                else:
                    self.self_cost[function] += cost

    def total(self) -> int:
        return sum(self.self_cost.values())

    def inclusive(self, function: str) -> int:
        """Of a function that does not call itself."""
        return self.self_cost[function] + sum(cost for (caller, _), cost in self.calls.items() if caller == function)


def profile(program: Path, args: list[str], timeout: float) -> Profile:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                "--compress-strings=no",
                "--compress-pos=no",
                f"--callgrind-out-file={out}",
                str(program),
                *args,
            ],
            check=True,
            capture_output=True,
            timeout=timeout,
        )
        return Profile(out.read_text())


def instructions(program: Path, args: list[str], timeout: float, sink=None) -> list[tuple[str, float, str]]:
    """Per operation in the steady state: the difference between two numbers of batches, less what the bare loop
    costs."""
    warm, long = (profile(program, ["count", str(batches)], timeout) for batches in (WARM, LONG))

    def per_operation(function: str) -> float:
        return (long.inclusive(function) - warm.inclusive(function)) / ((LONG - WARM) * BATCH)

    loop = per_operation(LOOP)
    counts = [(name, per_operation(function) - loop, "instructions") for name, function in OPERATIONS.items()]
    size = sizes(program)
    return counts + [(f"{name}, code", size[function] - size[LOOP], "bytes") for name, function in OPERATIONS.items()]


def sizes(program: Path) -> dict[str, int]:
    """Of the program's functions, in bytes."""
    listing = subprocess.run(["nm", "-S", "--defined-only", str(program)], check=True, capture_output=True, text=True)
    lines = (line.split() for line in listing.stdout.splitlines())
    return {words[3]: int(words[1], 16) for words in lines if len(words) == 4}


def root_share(program: Path, args: list[str], timeout: float, sink=None) -> list[tuple[str, float, str]]:
    """The share of all instructions spent in root work. "own": in the library's functions and the stubs around them.
    "with GC calls": also in what those call (darkening and promoting what roots hold)."""
    p = profile(program, args, timeout)
    is_root = {f: any(s in p.files[f] for s in ROOT_SOURCES) for f in p.self_cost}
    own = sum(cost for f, cost in p.self_cost.items() if is_root[f])
    called = sum(cost for (caller, callee), cost in p.calls.items() if is_root.get(caller) and not is_root.get(callee))
    return [
        ("root work, own", 100 * own / p.total(), "%"),
        ("root work, with GC calls", 100 * (own + called) / p.total(), "%"),
    ]
