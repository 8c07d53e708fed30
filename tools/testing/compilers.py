# SPDX-License-Identifier: MIT
"""Compilers: which of them are tested, and what differs between their versions."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testing.run import ROOT

TOOLCHAIN = ROOT / "tools/toolchain"
LIST = Path(__file__).with_name("versions")


class NoCompiler(Exception):
    pass


class NoSources(NoCompiler):
    """The archive does not have this version, or cannot be reached."""


@dataclass(frozen=True)
class Listed:
    """A line of the list of compilers, which explains the fields."""

    name: str  # a version or `newest`, and a flavour of it
    tests: str
    outheap: str
    purpose: str

    @property
    def known_to_outheap(self) -> tuple[str, ...]:
        if not self.is_plain or self.outheap == "-":
            return ()
        return (self.name,) if self.outheap == "yes" else tuple(self.outheap.split(","))

    @property
    def is_plain(self) -> bool:
        """A compiler of its own, not one that stands beside another or is asked for by a test."""
        return self.tests in ("all", "brief")


def read_list(text: str) -> tuple[Listed, ...]:
    rows = [line.split(maxsplit=3) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return tuple(Listed(*row) for row in rows)


LISTED = read_list(LIST.read_text())
EVERY = tuple(c.name for c in LISTED if c.is_plain)
BRIEF = tuple(c.name for c in LISTED if c.tests == "brief")
KNOWN_TO_OUTHEAP = tuple(dict.fromkeys(version for c in LISTED for version in c.known_to_outheap))


@dataclass(frozen=True)
class Compiler:
    prefix: Path
    variant: str = ""  # the folder of Outheap's libraries, to link with them,
    flavour: str = "release"  # and which (variants.py)

    @property
    def name(self) -> str:
        tsan = "+tsan" if self.is_tsan else ""
        flavour = "" if self.flavour == "release" else f"-{self.flavour}"
        return f"{self.version}{tsan}{f'+outheap{flavour}' if self.variant else ''}"

    @property
    def version(self) -> str:
        return answer(self.prefix, "-version")

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def release(self) -> tuple[int, ...]:
        """The first two numbers of the version."""
        return tuple(map(int, self.version.split(".")[:2]))

    @property
    def where(self) -> Path:
        return Path(answer(self.prefix, "-where"))

    @property
    def is_tsan(self) -> bool:
        return self.major >= 5 and "tsan: true" in answer(self.prefix, "-config").splitlines()

    @property
    def ocamlopt(self) -> Path:
        return self.prefix / "bin/ocamlopt.opt"

    @property
    def ocamlc(self) -> Path:
        return self.prefix / "bin/ocamlc.opt"

    def in_order(self, sources: Iterable[Path]) -> list[str]:
        """Their names, each after what it uses."""
        command = [self.prefix / "bin/ocamldep", "-sort", *sorted(sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [Path(name).name for name in done.stdout.split()]

    @property
    def libraries(self) -> list[str]:
        """Where unix, threads and dynlink are."""
        return ["-I", "+threads"] if self.major < 5 else ["-I", "+unix", "-I", "+threads", "-I", "+dynlink"]

    @property
    def native_c_libraries(self) -> list[str]:
        lines = answer(self.prefix, "-config").splitlines()
        found = [line.split(":", 1)[1].split() for line in lines if line.startswith("native_c_libraries:")]
        return [*(found[0] if found else []), "-lpthread", "-ldl", "-lm"]

    @property
    def faulty_debug_account(self) -> bool:
        """Gc.compact of this version's debug runtime leaves its account wrong (boxroot/test/README.md)."""
        return self.version.startswith(("5.0", "5.1", "5.2", "5.3"))

    @property
    def faulty_debug_runtime(self) -> bool:
        """This version's debug runtime fails by itself (boxroot/test/README.md)."""
        return self.version == "5.1.0"

    @property
    def settings(self) -> dict[str, str]:
        """Environment of commands that look for OCaml in PATH."""
        return {"PATH": f"{self.prefix}/bin:{os.environ['PATH']}", "OCAMLOPT": f"{self.prefix}/bin/ocamlopt"}


@cache
def answer(prefix: Path, option: str) -> str:
    try:
        return subprocess.run(
            [prefix / "bin/ocamlopt.opt", option], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoCompiler(f"{prefix}: {error}") from error


DUNE = ROOT / "tools/dune"
NO_DUNE = "no dune here; make test-all builds it"


def dune_is_there() -> bool:
    """In PATH, or built before."""
    cached = Path(os.environ.get("BOXROOT_CACHE") or Path.home() / ".cache/boxroot") / "dune/bin/dune"
    return shutil.which("dune") is not None or cached.exists()


@cache
def dune() -> str:
    """The path of dune, which is built first when it has to be."""
    done = subprocess.run([DUNE, "--path"], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip()


NOT_THERE = 3  # tools/toolchain's exit code


def toolchain(*words: str) -> str:
    """What tools/toolchain answers; its messages go to the terminal."""
    done = subprocess.run([TOOLCHAIN, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
    if done.returncode == NOT_THERE:
        raise NoSources(f"tools/toolchain {' '.join(words)}: the sources cannot be had")
    if done.returncode != 0:
        raise NoCompiler(f"tools/toolchain {' '.join(words)} failed")
    return done.stdout.strip()


def find(choice: str) -> Compiler:
    """The compiler of a version or a prefix, built first when it has to be; '' is the default one."""
    if choice == "":
        return Compiler(Path(toolchain("--default")))
    if "/" in choice:
        prefix = Path(choice).resolve()
        if not (prefix / "bin/ocamlopt.opt").exists():
            raise NoCompiler(f"no bin/ocamlopt.opt in {choice}")
        return Compiler(prefix)
    version = choice.split("+")[0]
    resolved = toolchain("--resolve", version)
    if version not in ("newest", resolved):
        raise NoCompiler(
            f"OCaml {version} is not available: write {', '.join(EVERY)} or {resolved}, or the prefix of an OCaml"
        )
    return Compiler(Path(toolchain(choice)))


@cache
def with_tsan(compiler: Compiler) -> Compiler | None:
    """The same version configured with ThreadSanitizer, if there is one; that of the newest version is built."""
    if compiler.is_tsan:
        return compiler
    beside = compiler.prefix.with_name(compiler.prefix.name + "+tsan")
    if (beside / "bin/ocamlopt.opt").exists():
        return Compiler(beside)
    if toolchain("--resolve", "newest") == compiler.version:
        return Compiler(Path(toolchain("newest+tsan")))
    return None
