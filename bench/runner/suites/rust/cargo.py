# SPDX-License-Identifier: MIT
"""Cargo: fetches, builds the archives, and is itself what two workloads measure."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ...compiler import BuildError
from ...fetch import FetchError

Rows = list[tuple[str, float, str]]
CHECKS = 3  # of the client in one round: the median counts


@dataclass(frozen=True)
class Package:
    """A folder with a Cargo.toml, and the OCaml that its dependencies are built for."""

    folder: Path
    ocamlopt: Path

    @property
    def target(self) -> Path:
        return self.folder / "target"

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CARGO_", "RUSTFLAGS")) or k == "CARGO_HOME"}
        return kept | {
            "OCAMLOPT": str(self.ocamlopt),
            "PATH": f"{self.ocamlopt.parent}:{os.environ['PATH']}",
            "CARGO_TARGET_DIR": str(self.target),
            "CARGO_INCREMENTAL": "0",
            "CARGO_TERM_COLOR": "never",
        }

    def run(self, *words: str) -> str:
        """What it says on its standard output."""
        if not shutil.which("cargo"):
            raise FetchError("cargo is missing")
        done = subprocess.run(
            ["cargo", *words], cwd=self.folder, env=self.environment(), capture_output=True, text=True
        )
        if done.returncode != 0:
            raise BuildError(f"cargo {words[0]}: " + "\n".join(errors_first(done.stderr)))
        return done.stdout

    def fetch(self) -> None:
        """With the network, or with what was fetched earlier."""
        try:
            self.run("fetch", "--quiet")
        except BuildError:
            try:
                self.run("--offline", "fetch", "--quiet")
            except BuildError as error:
                raise FetchError(str(error)) from None

    def timed(self, *words: str) -> tuple[float, float]:
        """Wall time, and processor time of all that cargo runs."""
        begin, before = time.monotonic(), os.times()
        self.run(*words)
        wall, after = time.monotonic() - begin, os.times()
        return wall, sum(after[2:4]) - sum(before[2:4])

    def crates(self) -> int:
        """Packages that a build compiles, without this one."""
        listed = self.run("tree", "--offline", "--edges", "no-dev", "--prefix", "none", "--format", "{p}")
        return len({line.removesuffix(" (*)") for line in listed.splitlines() if line}) - 1


def errors_first(text: str) -> list[str]:
    """Of what cargo says."""
    lines = text.strip().splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("error")), 0)
    return lines[first : first + 8]


def clean_build(package: Package, args: list[str], timeout: float, sink=None) -> Rows:
    shutil.rmtree(package.target, ignore_errors=True)
    wall, processor = package.timed("build", "--release", "--offline", "--quiet")
    return [("crates", package.crates(), ""), ("time", wall, "s"), ("processor time", processor, "s")]


def check(package: Package, args: list[str], timeout: float, sink=None) -> Rows:
    package.run("check", "--offline", "--quiet")
    times = []
    for _ in range(CHECKS):
        package.run("clean", "--offline", "--quiet", "--package", "client")
        times.append(package.timed("check", "--offline", "--quiet"))
    return [
        ("time", median(wall for wall, _ in times), "s"),
        ("processor time", median(processor for _, processor in times), "s"),
    ]
