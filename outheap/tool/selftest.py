#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests libraries of the runtime variant before they are installed: a step of outheap-build.

  selftest.py --ocamlopt COMMAND --library FOLDER --torture FOLDER --include FOLDER --seconds N [--cc COMMAND] FLAVOUR…

Links the torture test (foreign pointers in every kind of block, through every phase of the collector) with each
flavour, and runs it in several ways, which share the N seconds. Exit codes: 0, 1 (it fails; says how to repeat it)."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MODULES = ("foreign_code", "foreign", "par", "cell", "structures_blocks", "structures_weak", "structures_holders")
MODULES += ("structures", "operations", "torture")
VARIANTS = {
    "release": "_outheap",
    "debug": "_outheapd",
    "pic": "_outheap_pic",
    "count": "_outheap_count",
    "order": "_outheap_order",
    "bytecode": "_outheap",
    "bytecode-debug": "_outheapd",
    "instrumented": "_outheapi",
    "bytecode-instrumented": "_outheapi",
    "bytecode-pic": "_outheap_pic",
}
UNTESTED = ("notable",)  # not safe for foreign pointers, which is what it is for
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

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.ocamlopt = Path(shutil.which(options.ocamlopt) or options.ocamlopt)
        self.version = command([self.ocamlopt, "-version"], folder).split("+")[0].split("~")[0]
        self.major, self.minor = (int(n) for n in self.version.split(".")[:2])
        self.libraries = ["-I", "+threads"] + (["-I", "+unix"] if self.major >= 5 else [])
        self.compiled: set[str] = set()

    def compile(self, kind: str) -> Path:
        """`kind`: cmx or cmo."""
        place = self.folder / kind
        if kind in self.compiled:
            return place
        place.mkdir()
        for name in MODULES:
            source = self.options.torture / f"{name}.ml"
            if name == "par":
                beside = Path(__file__).resolve().parents[2] / "tools/ocaml"  # in a clone
                source = self.options.torture / f"par{self.major}.ml"
                source = source if source.exists() else beside / source.name
            shutil.copy(source, place / f"{name}.ml")
        where = command([self.ocamlopt, "-where"], self.folder).strip()
        include = [f"-I{self.options.include}", f"-I{where}"]
        words = [*self.options.cc.split(), "-std=gnu11", "-O2", "-g", "-c", self.options.torture / "foreign.c"]
        command([*words, *include, "-o", "c_foreign.o"], place)
        compiler = self.ocamlopt if kind == "cmx" else self.ocamlopt.with_name("ocamlc")
        command([compiler, "-g", "-w", "-a", *self.libraries, "-c", *(f"{m}.ml" for m in MODULES)], place)
        self.compiled.add(kind)
        return place

    def link(self, flavour: str) -> Path:
        native = not flavour.startswith("bytecode")
        place = self.compile("cmx" if native else "cmo")
        start = [self.ocamlopt] if native else [self.ocamlopt.with_name("ocamlc"), "-custom"]
        kind, unit = ("cmxa", "cmx") if native else ("cma", "cmo")
        variant = ["-I", self.options.library, "-runtime-variant", VARIANTS[flavour]]
        units = [f"unix.{kind}", f"threads.{kind}", *(f"{m}.{unit}" for m in MODULES), "c_foreign.o"]
        command([*start, "-g", *self.libraries, *variant, *units, "-o", f"torture-{flavour}"], place)
        return place / f"torture-{flavour}"

    def runs(self, flavour: str, seconds: float) -> list[Run]:
        """With one domain in both forms of the marking loop, with memory that is used again, with several domains."""
        program, debug = self.link(flavour), flavour in ("debug", "bytecode-debug")
        five = self.major >= 5
        verify = ["V=1,v=0"] if debug else []
        # Faults of the stock runtimes: compaction in debug runtimes before 5.4; in 5.1, domains that have threads, and
        # assertions about several domains.
        more = ["--no-compaction"] if debug and five and self.minor < 4 else []
        domains = ["--domains", "2", "--no-ephemerons", *(["--no-threads"] if self.minor < 2 else [])]
        ways: list[tuple[list[str], str, str]] = [([], "", ""), (["--recycle"], "reserve=8G", "s=4k")]
        if five:
            ways.append((["--no-threads"], "marking=table", ""))
            if not (debug and self.minor < 2):
                ways.append((domains, "", "s=32k"))
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
            print(f"outheap-build: {what}", file=sys.stderr, flush=True)

    def __enter__(self) -> Said:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--ocamlopt", "--cc"):
        parser.add_argument(name, default="cc")
    for name in ("--library", "--torture", "--include"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("flavours", nargs="+")
    options = parser.parse_args()
    options.library, options.include = options.library.resolve(), options.include.resolve()
    options.torture = options.torture.resolve()
    flavours = [f for f in options.flavours if f not in UNTESTED]
    if not flavours:
        return 0
    print(f"outheap-build: testing it for {options.seconds:g} s", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Said() as said, ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                programs = Programs(options, Path(folder))
                runs = [run for f in flavours for run in programs.runs(f, options.seconds / len(flavours))]
                said.total = len(runs)
                for _ in pool.map(Run.check, runs):
                    said.done += 1
        except Failed as failed:
            print(f"outheap-build: {failed}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
