# SPDX-License-Identifier: MIT
"""Compilers: which of them are tested, and what differs between their versions."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testing.run import ROOT

TOOLCHAIN = ROOT / "tools/toolchain"
EVERY = ("newest", "5.3.0", "4.14.1", "5.1.0")
KNOWN_TO_OUTHEAP = ("4.14.1", "5.1.0", "5.3.0", "5.4.1", "5.5.2")


class NoCompiler(Exception):
    pass


@dataclass(frozen=True)
class Compiler:
    prefix: Path
    variant: str = ""  # the folder of Outheap's libraries, to link with them

    @property
    def name(self) -> str:
        tsan = "+tsan" if self.is_tsan else ""
        return f"{self.version}{tsan}{'+outheap' if self.variant else ''}"

    @property
    def version(self) -> str:
        return answer(self.prefix, "-version")

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

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


def toolchain(*words: str) -> str:
    """What tools/toolchain answers; its messages go to the terminal."""
    done = subprocess.run([TOOLCHAIN, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
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
            f"OCaml {version} is not available: write 4.14.1, 5.1.0, 5.3.0, {resolved} or newest, "
            "or the prefix of an OCaml"
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
