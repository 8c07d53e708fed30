# SPDX-License-Identifier: MIT
"""Tests libraries of the runtime variant before they are installed.

Links the torture test (foreign pointers in every kind of block, through every phase of the collector: tool/selftest)
with each flavour, and runs it in several ways, which share the time that is given."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from build import HOME, say
from build.compiler import Compiler
from build.libraries import Flavour

MODULES = ("foreign_code", "foreign", "par", "cell", "structures_blocks", "structures_weak", "structures_holders")
MODULES += ("structures", "operations", "torture")
SOURCES = HOME / "tool/selftest"
SEED = 1


class Failed(Exception):
    pass


@dataclass
class Run:
    program: Path
    options: list[str]
    outheap: str
    runparam: str
    seconds: float

    def check(self) -> None:
        settings = {"OUTHEAP": self.outheap, "OCAMLRUNPARAM": self.runparam}
        words = [str(self.program), "--seed", str(SEED), "--seconds", f"{self.seconds:g}", *self.options]
        shown = " ".join([*(f"{k}={v}" for k, v in settings.items() if v), shlex.join([self.program.name, *words[1:]])])
        try:
            done = subprocess.run(
                words, env=clean() | settings, capture_output=True, text=True, errors="replace",
                stdin=subprocess.DEVNULL, timeout=self.seconds * 4 + 120, cwd=self.program.parent,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failed(f"{shown}: it does not end") from None
        if done.returncode != 0:
            last = (done.stdout + done.stderr).strip().splitlines()[-6:]
            raise Failed("\n".join([f"{shown}: exit code {done.returncode}", *last]))


def clean() -> dict[str, str]:
    unwanted = ("OCAMLPARAM", "OCAMLRUNPARAM", "CAMLRUNPARAM", "OUTHEAP", "OCAMLLIB", "CAMLLIB")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def command(words: list[str | Path], folder: Path) -> str:
    done = subprocess.run([str(w) for w in words], cwd=folder, env=clean(), capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{shlex.join(str(w) for w in words)}\n{(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


class Programs:
    """The test, compiled once for each code generator, and linked with each flavour."""

    def __init__(self, compiler: Compiler, library: Path, folder: Path) -> None:
        self.compiler, self.library, self.folder = compiler, library, folder
        self.major, self.minor = (int(n) for n in compiler.base.split(".")[:2])
        self.libraries = ["-I", "+threads"] + (["-I", "+unix"] if self.major >= 5 else [])
        self.compiled: set[str] = set()

    def compile(self, kind: str) -> Path:
        """`kind`: cmx or cmo."""
        place = self.folder / kind
        if kind in self.compiled:
            return place
        place.mkdir()
        for name in MODULES:
            source = SOURCES / (f"par{self.major}.ml" if name == "par" else f"{name}.ml")
            shutil.copy(source, place / f"{name}.ml")
        words = [*self.compiler.cc, "-std=gnu11", "-O2", "-g", "-c", SOURCES / "foreign.c"]
        command([*words, f"-I{HOME / 'include'}", f"-I{self.compiler.library}", "-o", "c_foreign.o"], place)
        compiler = self.compiler.ocamlopt if kind == "cmx" else self.compiler.beside("ocamlc")
        command([compiler, "-g", "-w", "-a", *self.libraries, "-c", *(f"{m}.ml" for m in MODULES)], place)
        self.compiled.add(kind)
        return place

    def link(self, flavour: Flavour) -> Path:
        native = flavour.native
        place = self.compile("cmx" if native else "cmo")
        start = [self.compiler.ocamlopt] if native else [self.compiler.beside("ocamlc"), "-custom"]
        kind, unit = ("cmxa", "cmx") if native else ("cma", "cmo")
        variant = ["-I", self.library, "-runtime-variant", flavour.variant]
        units = [f"unix.{kind}", f"threads.{kind}", *(f"{m}.{unit}" for m in MODULES), "c_foreign.o"]
        command([*start, "-g", *self.libraries, *variant, *units, "-o", f"torture-{flavour.name}"], place)
        return place / f"torture-{flavour.name}"

    def runs(self, flavour: Flavour, seconds: float, threads: bool) -> list[Run]:
        """With one domain in both forms of the marking loop, with memory that is used again, with several domains.
        `threads`: may there be others than the first?"""
        program, debug = self.link(flavour), flavour.name in ("debug", "bytecode-debug")
        five = self.major >= 5
        verify = ["V=1,v=0"] if debug else []
        # Faults of the stock runtimes: compaction in debug runtimes before 5.4; in 5.1, domains that have threads, and
        # assertions about several domains.
        more = ["--no-compaction"] if debug and five and self.minor < 4 else []
        domains = ["--domains", "2", "--no-ephemerons", *(["--no-threads"] if self.minor < 2 else [])]
        ways: list[tuple[list[str], str, str]] = [([], "", ""), (["--recycle"], "reserve=8G", "s=4k")]
        if five:
            ways.append((["--no-threads"], "debug.marking=table", ""))
            if not (debug and self.minor < 2):
                ways.append((domains, "", "s=32k"))
        if not threads:
            alone = ["--no-threads", "--without", "domain-result"]
            ways = [(alone, "", ""), (alone, "debug.marking=table", "s=4k")]
        each = max(0.5, seconds / len(ways))
        return [
            Run(program, [*options, *more], ",".join(["opaque=1", *([s] if s else [])]),
                ",".join([*verify, *([p] if p else [])]), each)
            for options, s, p in ways
        ]  # fmt: skip


class Said:
    """Says every twenty seconds how many of the runs have ended. No total: the programs are being built."""

    def __init__(self) -> None:
        self.total, self.done, self.ended = 0, 0, threading.Event()
        self.thread = threading.Thread(target=self._say, daemon=True)

    def _say(self) -> None:
        while not self.ended.wait(20):
            what = f"testing, {self.done} of {self.total} runs have ended" if self.total else "building the test"
            say(what)

    def __enter__(self) -> Said:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def test(compiler: Compiler, library: Path, flavours: list[Flavour], seconds: float, threads: bool = True) -> None:
    """Tests the libraries in a folder, with or without several threads. Failed: says how to repeat what fails."""
    say(f"testing it for {seconds:g} s")
    folders, pools = tempfile.TemporaryDirectory(prefix="outheap-selftest-"), ThreadPoolExecutor(os.cpu_count() or 2)
    with folders as folder, Said() as said, pools as pool:
        programs = Programs(compiler, library, Path(folder))
        runs = [run for flavour in flavours for run in programs.runs(flavour, seconds / len(flavours), threads)]
        said.total = len(runs)
        for _ in pool.map(Run.check, runs):
            said.done += 1
