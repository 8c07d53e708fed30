# SPDX-License-Identifier: MIT
"""The OCaml compiler, the C compiler beside it, and the flags of all C code of a program."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
BUILT = (
    Path(os.environ.get("BUILD") or ROOT / "_build").resolve() / "bench"
)  # nothing else is written to, except results
C_FLAGS = ["-O2", "-g"]
OCAML_FLAGS = ["-g"]
DEBUG_INFORMATION = ["-gdwarf-4"]  # changes no code; valgrind 3.19 cannot read clang's later format


@dataclass(frozen=True)
class Build:
    """A way to compile all C code of a program, the library's, the rival's and the workload's. `cc`: the C compiler, or
    the one that OCaml itself reports. `plain`: -O2 alone, instead of the flags that OCaml reports for C code."""

    name: str
    label: str
    note: str
    cc: str | None = None
    plain: bool = False


USERS = "users"
BUILDS = {
    b.name: b
    for b in [
        Build(
            USERS,
            "",
            "the C compiler and flags that OCaml reports: what ocamlc and dune use, with -fPIC where OCaml says so",
        ),
        Build("O2", "-O2", "the same compiler, -O2 alone", plain=True),
        Build("clang", "clang", "clang with the flags that OCaml reports", cc="clang"),
        Build("clang-O2", "clang -O2", "clang, -O2 alone", cc="clang", plain=True),
    ]
}


class BuildError(Exception):
    pass


class Compiler:
    """An OCaml installation and the C compiler beside it."""

    def __init__(self, prefix: Path):
        self.ocamlopt = next((p for n in ("ocamlopt.opt", "ocamlopt") if (p := prefix / "bin" / n).exists()), None)
        if self.ocamlopt is None:
            raise BuildError(f"no ocamlopt in {prefix}/bin")
        self.version = self._ask("-version")
        self.where = Path(self._ask("-where"))
        self.flambda = "flambda: true" in self._ask("-config")
        self.ocaml5 = int(self.version.split(".")[0]) >= 5
        self.cc = os.environ.get("CC", "cc")
        # What ocamlc runs for a C file: dune's :standard flags are these too. ocamlopt's own can lack -fPIC (OCaml
        # 5.3.0).
        self.users_cc, *self.users_flags = shlex.split(self._ask("-config-var", "bytecomp_c_compiler"))
        self.build_dir = BUILT / self.version

    def _ask(self, *option: str) -> str:
        return subprocess.run([self.ocamlopt, *option], check=True, capture_output=True, text=True).stdout.strip()

    def in_order(self, sources: Iterable[Path]) -> list[Path]:
        """OCaml's, each after what it uses."""
        command = [self.ocamlopt.with_name("ocamldep"), "-sort", *sorted(sources)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return [Path(name) for name in done.stdout.split()]

    def c_command(self, build: str = USERS) -> list[str]:
        """The C compiler with the flags of a build."""
        b = BUILDS[build]
        cc = b.cc or os.environ.get("CC") or self.users_cc
        return [cc, *(["-O2"] if b.plain else self.users_flags), *DEBUG_INFORMATION]

    def can(self, build: str) -> bool:
        return shutil.which(self.c_command(build)[0]) is not None


def run_tool(command: list, directory: Path) -> None:
    done = subprocess.run([str(c) for c in command], cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(" ".join(map(str, command)) + "\n" + done.stderr + done.stdout)
