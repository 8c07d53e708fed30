# SPDX-License-Identifier: MIT
"""Runs a program within a time limit, and says how it ended."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = Path(os.environ.get("BUILD") or ROOT / "_build").resolve()
BUILD = OUT / "test"
LINKS = OUT / "path"  # the commands of tools/needs.txt, and no others
SKIPPED = 77
MOST = 2.0  # times as long as on a quiet machine
# What a developer's shell may set, and would change what is tested.
UNWANTED = (
    "OCAMLRUNPARAM",
    "CAMLRUNPARAM",
    "OCAMLPARAM",
    "OCAMLLIB",
    "CAMLLIB",
    "OUTHEAP",
    "CAML_LD_LIBRARY_PATH",
    "OCAML_WHERE_PATH",
    "OCAML_VERSION",
    "OPAM_SWITCH_PREFIX",
    "CFLAGS",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "OCAMLPATH",
    "OCAMLFIND_CONF",
    "DUNE_BUILD_DIR",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "BUILD",
    "OCAML",
)


def shown(path: Path) -> str:
    """A path, from the top of the repository where it lies below it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


@dataclass
class Outcome:
    command: Sequence[str]
    folder: Path
    log: Path
    limit: float
    code: int
    seconds: float
    late: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.code == 0 and not self.late

    @property
    def skipped(self) -> bool:
        return self.code == SKIPPED and not self.late

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def why(self) -> str:
        if self.late:
            return f"not done after {self.limit:g} s"
        if self.code < 0:
            return signal.Signals(-self.code).name
        return f"exit code {self.code}"

    def reason(self) -> str:
        """Why it was skipped, in the program's words."""
        found = [line.removeprefix("skipped: ") for line in self.text.splitlines() if line.startswith("skipped: ")]
        return found[-1] if found else "no reason given"

    def tail(self, lines: int = 12) -> str:
        useful = [line[:400] for line in self.text.splitlines() if line.strip() and not line.startswith("player ")]
        return "\n".join(f"  | {line}" for line in useful[-lines:])

    def again(self) -> str:
        """The shell command that repeats it from the top of the repository."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.settings.items()]
        return " ".join(
            [
                f"cd {shlex.quote(shown(self.folder))} &&",
                *(["env", *settings] if settings else []),
                shlex.join(self.command),
            ]
        )


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return kept | dict(settings or {})


def crowding() -> float:
    """How many programs want each processor, or have wanted one in the last quarter of an hour: so much longer than on
    a quiet machine may a program take. 1 at least, MOST at most."""
    return min(MOST, max(1.0, max(os.getloadavg()) / (os.cpu_count() or 1)))


def waited(process: subprocess.Popen, limit: float) -> int | None:
    """Its exit code; None: it has had its time, which is the limit on a quiet machine and more on a busy one."""
    start = time.monotonic()
    while True:
        left = limit * crowding() - (time.monotonic() - start)
        if left <= 0:
            return process.poll()
        try:
            return process.wait(timeout=min(left, limit))
        except subprocess.TimeoutExpired:
            pass


def threads_of(group: int) -> list[str]:
    """What each thread of a process group is at: its state, the kernel's function that it waits in, the processor time
    that it has used, in ticks."""
    found = []
    for stat in sorted(Path("/proc").glob("[0-9]*/task/[0-9]*/stat")):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[2]) == group:
                at = stat.with_name("wchan").read_text()
                found.append(f"{stat.parent.name} {name}: {fields[0]} {at}, {int(fields[11]) + int(fields[12])} ticks")
        except OSError:
            pass  # it has ended
    return found


def run(
    command: Sequence[str | Path], folder: Path, log: Path, limit: float, settings: Mapping[str, str] | None = None
) -> Outcome:
    """`settings` are added to the environment. The whole process group ends with the program or at the limit, which is
    for a quiet machine."""
    words = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    outcome = Outcome(words, folder, log, limit, code=127, seconds=0, settings=dict(settings or {}))
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        except OSError as error:
            out.write(f"{error}\n".encode())
            return outcome
        try:
            code = waited(process, limit)
            outcome.late = code is None
            outcome.code = outcome.code if code is None else code
            if outcome.late:
                out.write("\n".join(["", *threads_of(process.pid), ""]).encode())
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            if outcome.late:
                outcome.code = process.wait()
            outcome.seconds = time.monotonic() - start
    return outcome
