# SPDX-License-Identifier: MIT
"""The OCaml compiler, the C compiler beside it, and the flags of all C code of a program."""

from __future__ import annotations

import hashlib
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

    @property
    def domains(self) -> Path:
        """The module Domains of this version."""
        return BENCH / "common" / ("domains_ocaml5.ml" if self.ocaml5 else "domains_ocaml4.ml")

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


def built(
    directory: Path,
    name: str,
    ml: dict[str, Path],
    c: list[Path],
    c_command: list,
    ocaml_command: list,
    depends: Iterable[Path],
    linked: Iterable = (),
) -> Path:
    """The program `name` of OCaml files, which are copied by these names, and of C files; built again when anything has
    changed that it is made of."""
    result, stamp = directory / name, directory / "stamp"
    digest = hashlib.sha256(repr((c_command, ocaml_command, list(ml))).encode())
    for path in sorted({*ml.values(), *c, *depends, *(BENCH / "common").glob("*.h")}):
        digest.update(str(path).encode() + path.read_bytes())
    if result.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return result
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file, path in ml.items():
        shutil.copy(path, directory / file)
    for path in c:
        run_tool([*c_command, path, "-o", path.stem + ".o"], directory)
    objects = [path.stem + ".o" for path in c]
    run_tool([*ocaml_command, *ml, *objects, *linked, "-o", name], directory)
    stamp.write_text(digest.hexdigest())
    return result
