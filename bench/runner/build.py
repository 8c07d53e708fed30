# SPDX-License-Identifier: MIT
"""Compiles the program of a workload with an implementation: one program per pair, all with the same flags."""
from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import fetch

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
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
BUILDS = {b.name: b for b in [
    Build(USERS, "", "the C compiler and flags that OCaml reports: what ocamlc and dune use, with -fPIC where OCaml says so"),
    Build("O2", "-O2", "the same compiler, -O2 alone", plain=True),
    Build("clang", "clang", "clang with the flags that OCaml reports", cc="clang"),
    Build("clang-O2", "clang -O2", "clang, -O2 alone", cc="clang", plain=True),
]}


class BuildError(Exception):
    pass


class Compiler:
    """An OCaml installation and the C compiler beside it."""

    def __init__(self, prefix: Path, build_dir: Path | None):
        self.ocamlopt = next((p for n in ("ocamlopt.opt", "ocamlopt") if (p := prefix / "bin" / n).exists()), None)
        if self.ocamlopt is None:
            raise BuildError(f"no ocamlopt in {prefix}/bin")
        self.version = self._ask("-version")
        self.where = Path(self._ask("-where"))
        self.flambda = "flambda: true" in self._ask("-config")
        self.ocaml5 = int(self.version.split(".")[0]) >= 5
        self.cc = os.environ.get("CC", "cc")
        # What ocamlc runs for a C file: dune's :standard flags are these too. ocamlopt's own can lack -fPIC (OCaml 5.3.0).
        self.users_cc, *self.users_flags = shlex.split(self._ask("-config-var", "bytecomp_c_compiler"))
        self.build_dir = build_dir or ROOT / "_build" / "bench" / self.version

    def _ask(self, *option: str) -> str:
        return subprocess.run([self.ocamlopt, *option], check=True, capture_output=True, text=True).stdout.strip()

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


def library_files(library: str) -> tuple[Path, list[Path], list[Path]]:
    """The folder with boxroot.h, the C sources to compile, and every file they depend on."""
    if library == "ours":
        sources = ROOT / "boxroot"
        return sources / "include", [sources / "src" / "all.c"], [*sources.glob("include/**/*.h"), *sources.glob("src/*.[ch]")]
    folder = fetch.published(ROOT / "_build" / "bench" / "rivals") if library == "published" else BENCH / "rivals" / library
    return folder, [c for c in sorted(folder.glob("*.c")) if not c.stem.endswith("_stubs")], [*folder.glob("*.[ch]")]


def program(workload, implementation, compiler: Compiler, build: str = USERS) -> Path:
    """The program, built anew when anything it is made of has changed."""
    directory = compiler.build_dir / workload.source / implementation.name / build
    result = directory / f"{workload.source}.exe"
    include, c_sources, depends = library_files(implementation.library) if implementation.library else (None, [], [])
    adaptors = BENCH / "rivals" / implementation.adaptors
    ml = [BENCH / "common" / n for n in ("bench.ml", "rng.ml", "steps.ml")]
    ml.append(BENCH / "common" / ("domains_ocaml5.ml" if compiler.ocaml5 else "domains_ocaml4.ml"))
    ml += [adaptors / f"{m}.ml" for m in workload.modules]
    ml.append(BENCH / "workloads" / f"{workload.source}.ml")
    stubs = [BENCH / "common" / "bench_stubs.c", BENCH / "common" / "steps_stubs.c"]
    stubs.append(BENCH / "workloads" / f"{workload.source}_stubs.c")
    stubs += [adaptors / f"{m}_stubs.c" for m in workload.modules]
    c_sources = c_sources + [s for s in stubs if s.exists()]

    includes = ["-I", BENCH / "common", *(["-I", include] if include else []), "-I", compiler.where]
    c_command = [*compiler.c_command(build), *implementation.flags, *includes, "-c"]
    ml_names = [p.name.replace("domains_ocaml5", "domains").replace("domains_ocaml4", "domains") for p in ml]
    ocaml_command = [compiler.ocamlopt, *OCAML_FLAGS, *ml_names]

    digest = hashlib.sha256(repr((c_command, ocaml_command)).encode())
    for path in sorted({*ml, *c_sources, *depends, BENCH / "common" / "checked_root.h"}):
        digest.update(str(path).encode() + path.read_bytes())
    stamp = directory / "stamp"
    if result.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return result

    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    objects = []
    for source in c_sources:
        run_tool([*c_command, source, "-o", source.stem + ".o"], directory)
        objects.append(source.stem + ".o")
    for source, name in zip(ml, ml_names):
        shutil.copy(source, directory / name)
    run_tool([*ocaml_command, *objects, "-o", result.name], directory)
    stamp.write_text(digest.hexdigest())
    return result
