# SPDX-License-Identifier: MIT
"""The programs that test Boxroot: what each is made of, how they are built for a compiler and a flavour, and which
tests they have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testing import steps, variants
from testing.compilers import Compiler
from testing.flavours import BOXROOT, Flavour
from testing.run import BUILD, ROOT, environment

TESTS = ROOT / "boxroot/test"
LIBRARY = ROOT / "boxroot"
WARNINGS = ("-Wall", "-Wextra")
OCAML_WARNINGS = ("-w", "+a-4-9-40..42-44-45-70", "-warn-error", "+a")
CC, CXX = os.environ.get("CC") or "cc", os.environ.get("CXX") or "c++"
# The library's own requests for memory, and only they, go through test_mmap and so on.
RENAMED = ("mmap", "mprotect", "madvise", "sysconf", "malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign")


@dataclass(frozen=True)
class Program:
    modules: tuple[str, ...]  # OCaml, in the order of linking
    stubs: tuple[str, ...]  # C, below boxroot/test
    cxx: str = ""
    library: str = "lib.o"
    threads: bool = True
    checked: bool = False  # for flavours with BOXROOT_DEBUG=1


MODEL = ("values", "model_player", "model_roots", "model_step", "model")
UNIT = ("unit_common", "unit_roots", "unit_teardown", "unit_starts", "unit_hooks", "unit_languages", "unit")
REGRESS = (
    "regress_common",
    "regress_domains",
    "regress_finalisers",
    "regress_memory",
    "regress_occupancy",
    "regress_barrier",
    "regress_misuse",
    "regress_hooks",
    "regress",
)
STORAGE = ("storage_common", "storage_model", "storage_memory", "storage_domains", "storage")

PROGRAMS = {
    "model": Program(("root", "par", *MODEL), ("common/root_stubs", "model/model_stubs")),
    "unit": Program(
        ("root", "par", "hooks", *UNIT),
        ("common/root_stubs", "common/hooks_stubs", "unit/unit_stubs", "unit/compat_040"),
        "unit/cxx",
    ),
    "regress": Program(
        ("root", "par", "hooks", "process", *REGRESS),
        ("common/root_stubs", "common/hooks_stubs", "regress/regress_stubs", "regress/oom_stubs"),
        library="lib-oom.o",
    ),
    "contract": Program(("root", "par", "contract"), ("common/root_stubs", "contract/contract_stubs")),
    "checked": Program(
        ("root", "par", "process", "checked"),
        ("common/root_stubs", "checked/checked_stubs"),
        "checked/checked",
        checked=True,
    ),
    "frames": Program(
        ("root", "par", "process", "players", "frames"),
        ("common/root_stubs", "frames/frames_stubs", "regress/oom_stubs"),
        "frames/frames_cxx",
        library="lib-oom.o",
    ),
    "weak": Program(
        ("root", "par", "process", "players", "values", "weak"),
        ("common/root_stubs", "model/model_stubs", "weak/weak_stubs", "regress/oom_stubs"),
        "weak/weak_cxx",
        library="lib-oom.o",
    ),
    "ephemeral": Program(
        ("root", "par", "process", "players", "values", "ephemeral"),
        ("common/root_stubs", "model/model_stubs", "ephemeral/ephemeral_stubs", "regress/oom_stubs"),
        "ephemeral/ephemeral_cxx",
        library="lib-oom.o",
    ),
    "storage": Program(
        ("root", "par", "process", "players", "values", *STORAGE),
        ("common/root_stubs", "model/model_stubs", "storage/storage_stubs", "regress/oom_stubs"),
        "storage/storage_cxx",
        library="lib-oom.o",
    ),
    "wide": Program(
        ("root", "par", "process", "players", "values", "wide"),
        ("common/root_stubs", "model/model_stubs", "wide/wide_stubs", "regress/oom_stubs"),
        "wide/wide_cxx",
        library="lib-oom.o",
    ),
    "report": Program(("root", "par", "process", "report"), ("common/root_stubs", "report/report_stubs")),
    "single": Program(
        ("root", "par", "hooks", "single"),
        ("common/root_stubs", "common/hooks_stubs", "unit/single_stubs"),
        threads=False,
    ),
}
EMBEDDED = {"embed": "unit/embed"}  # C programs that hold OCaml as an object
# What only OCaml 4.14 has. `early` uses the library before systhreads is initialised.
PROGRAMS_4 = {"locks": Program(("root", "early", "locks"), ("common/root_stubs", "regress4/locks_stubs"))}
EMBEDDED_4 = {"startup": "regress4/startup"}
ALONE = ("model",)


class NoSources(Exception):
    """The sources of 0.4.0 are not here."""


def rival_sources() -> Path:
    registry = Path(
        os.environ.get("BOXROOT_RIVAL") or Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry/src"
    )
    found = sorted(registry.glob("*/ocaml-boxroot-sys-0.4.0/vendor/boxroot"))
    if not found:
        raise NoSources("no sources of 0.4.0 here: cargo fetches them")
    return found[0]


def folder_of(compiler: Compiler, part: str) -> Path:
    return BUILD / compiler.name / part


def sources(*parts: str) -> list[Path]:
    return [
        f
        for part in parts
        for f in sorted((ROOT / part).rglob("*"))
        if f.suffix in (".c", ".h", ".hpp", ".cpp", ".ml", ".mli", ".in")
    ]


def programs_of(compiler: Compiler, flavour: Flavour) -> dict[str, Program]:
    if flavour.model_only:
        return {name: PROGRAMS[name] for name in ALONE}
    debug = any(f.startswith("-DBOXROOT_DEBUG") for f in flavour.cflags)
    found = PROGRAMS if compiler.major >= 5 else PROGRAMS | PROGRAMS_4
    return {name: program for name, program in found.items() if debug or not program.checked}


def embedded_of(compiler: Compiler, flavour: Flavour) -> dict[str, str]:
    if flavour.model_only or compiler.is_tsan:  # `ld -r` does not know the options that a compiler with TSan passes it
        return {}
    return EMBEDDED if compiler.major >= 5 else EMBEDDED | EMBEDDED_4


def stock(compiler: Compiler) -> Compiler:
    return Compiler(compiler.prefix)


def runtime_of(compiler: Compiler, runtime: str) -> list[str]:
    if compiler.variant:
        return ["-I", compiler.variant, "-runtime-variant", f"{variants.SUFFIX[compiler.flavour]}{runtime}"]
    return ["-runtime-variant", runtime] if runtime else []


def build_modules(compiler: Compiler) -> Path:
    """The OCaml code, once per compiler."""
    folder = folder_of(compiler, "ml")
    files = [f for f in sources("boxroot/test") if f.suffix == ".ml" and f.parent.name not in ("build", "reference")]
    files.append(ROOT / f"outheap/tool/selftest/par{compiler.major}.ml")

    def build() -> None:
        for file in files:
            shutil.copy(file, folder / ("par.ml" if file.stem.startswith("par") else file.name))
        include = ["-I", ".", *compiler.libraries]
        programs = (PROGRAMS if compiler.major >= 5 else PROGRAMS | PROGRAMS_4).values()
        for module in dict.fromkeys(m for p in programs for m in p.modules):
            steps.command([compiler.ocamlopt, "-g", *OCAML_WARNINGS, *include, "-c", f"{module}.ml"], folder)
        for runtime in () if compiler.is_tsan else ("",) if compiler.variant else ("", "d"):
            words = [
                compiler.ocamlopt,
                "-g",
                *runtime_of(compiler, runtime),
                "-output-complete-obj",
                "embed.ml",
                "-o",
                f"embedded{runtime}.o",
            ]
            steps.command(words, folder)

    return steps.step(folder, files, [compiler.prefix, PROGRAMS, PROGRAMS_4], build)


class FlavourBuild:
    """Compiles and links the programs of one compiler and flavour in a folder."""

    def __init__(self, compiler: Compiler, flavour: Flavour) -> None:
        self.compiler, self.flavour = compiler, flavour
        self.folder = folder_of(compiler, flavour.name)
        self.modules = build_modules(compiler)
        self.programs, self.embedded = programs_of(compiler, flavour), embedded_of(compiler, flavour)
        self.own = flavour.library == "ours"
        match flavour.library:
            case "ours":
                self.include = [f"-I{LIBRARY}/include"]
            case "rival":
                self.include = [f"-I{rival_sources()}", "-DTEST_RIVAL=1"]
            case _:
                self.include = [f"-I{TESTS}/reference"]
        self.warnings = list(WARNINGS) if self.own else ["-w"]

    def run(self) -> Path:
        words = [self.compiler, self.flavour, self.programs, self.embedded, CC, CXX, self.include]
        return steps.step(
            self.folder,
            sources("boxroot/include", "boxroot/src", "boxroot/test", "outheap/tool/selftest", "tools/testing"),
            words,
            self._build,
        )

    def _build(self) -> None:
        units = {s for p in self.programs.values() for s in p.stubs} | set(self.embedded.values())
        cxx = {p.cxx for p in self.programs.values() if p.cxx and self._has_cxx()}
        compiled = self._library() + [
            self._c(TESTS / f"{unit}.c", f"{Path(unit).name}.o", "gnu11") for unit in sorted(units)
        ]
        compiled += [self._cxx(unit) for unit in sorted(cxx)]
        if self.flavour.measures_coverage:
            compiled.append([CC, "-c", ROOT / "tools/testing/coverage.c", "-o", "coverage.o"])
        steps.commands(compiled, self.folder)
        if self.flavour.library == "rival":
            steps.command(["ld", "-r", "-o", "lib.o", *self._rival_objects()], self.folder)
        if any(p.library == "lib-oom.o" for p in self.programs.values()):
            renames = [word for f in RENAMED for word in ("--redefine-sym", f"{f}=test_{f}")]
            steps.command(["objcopy", *renames, "lib.o", "lib-oom.o"], self.folder)
        links = [self._link(name, program) for name, program in self.programs.items()]
        steps.commands(links + [self._link_embedded(name, unit) for name, unit in self.embedded.items()], self.folder)

    def _has_cxx(self) -> bool:
        return self.own and shutil.which(CXX) is not None

    def _ends(self) -> list[str]:
        """How programs of this flavour end."""
        return ["coverage.o"] if self.flavour.measures_coverage else []

    def _c(self, source: Path, out: str, standard: str) -> list[str | Path]:
        gnu = ["-D_GNU_SOURCE"] if source.parent.name == "regress4" else []
        return [
            CC,
            f"-std={standard}",
            *gnu,
            *self.warnings,
            *self.flavour.cflags,
            "-c",
            source,
            *self.include,
            f"-I{self.compiler.where}",
            "-o",
            out,
        ]

    def _cxx(self, unit: str) -> list[str | Path]:
        return [
            CXX,
            "-std=c++11",
            *self.warnings,
            *self.flavour.cflags,
            "-c",
            TESTS / f"{unit}.cpp",
            *self.include,
            f"-I{self.compiler.where}",
            "-o",
            f"{Path(unit).name}_cxx.o",
        ]

    def _library(self) -> list[list[str | Path]]:
        match self.flavour.library:
            case "ours":
                return [self._c(LIBRARY / "src/all.c", "lib.o", "c11")]
            case "rival":
                return [
                    self._c(rival_sources() / f"{name}.c", f"lib_{name}.o", "gnu17")
                    for name in ("boxroot", "ocaml_hooks", "platform")
                ]
            case _:
                return [self._c(TESTS / "reference/boxroot.c", "lib.o", "gnu11")]

    def _rival_objects(self) -> list[str]:
        return [f"lib_{name}.o" for name in ("boxroot", "ocaml_hooks", "platform")]

    def _link(self, name: str, program: Program) -> list[str | Path]:
        compiler, runtime = self.compiler, self.flavour.runtime
        words: list[str | Path] = [compiler.ocamlopt, "-g", "-I", self.modules, *runtime_of(compiler, runtime)]
        for flag in self.flavour.lflags:
            words += ["-ccopt", flag]
        modules: list[str | Path] = [self.modules / f"{m}.cmx" for m in program.modules]
        if program.threads:
            words += [*compiler.libraries, "unix.cmxa"]
            at = modules.index(self.modules / "early.cmx") + 1 if "early" in program.modules else 0
            modules.insert(at, "threads.cmxa")
        else:
            words += compiler.libraries
        objects = [program.library, *(f"{Path(s).name}.o" for s in program.stubs), *self._ends()]
        if program.cxx and self._has_cxx():
            objects += [f"{Path(program.cxx).name}_cxx.o", "-cclib", "-lstdc++"]
        return [*words, *modules, *objects, "-o", name]

    def _link_embedded(self, name: str, unit: str) -> list[str | Path]:
        compiler, runtime = self.compiler, self.flavour.runtime
        objects = self.modules / f"embedded{runtime}.o"
        return [
            CC,
            *self.flavour.lflags,
            f"{Path(unit).name}.o",
            objects,
            "lib.o",
            *self._ends(),
            *compiler.native_c_libraries,
            "-o",
            name,
        ]


@cache
def build(compiler: Compiler, flavour: Flavour) -> Path:
    if compiler.variant:
        variants.library(stock(compiler), compiler.flavour)
    return FlavourBuild(compiler, flavour).run()


def tests_of(compiler: Compiler, flavour: Flavour) -> list[tuple[str, str, list[str]]]:
    """(program, test, words about it) of a flavour, by the programs' own lists: those of its folder if it has them,
    else of one that is alike."""
    names = [*programs_of(compiler, flavour), *embedded_of(compiler, flavour)]
    found = []
    for name in (n for n in names if n not in ALONE):
        alike = BOXROOT["checked" if name in PROGRAMS and PROGRAMS[name].checked else "release"]
        found += [(name, *case) for case in words_of(build(stock(compiler), alike) / name).items()]
    return found


def list_of(program: Path, *options: str) -> Sequence[str]:
    """The names of its cases."""
    return list(words_of(program, *options))


@cache
def words_of(program: Path, *options: str) -> dict[str, list[str]]:
    """Its cases by its own list, a line each: the name, and words about it, as `slow`."""
    done = subprocess.run(
        [program, *(options or ("--list",))],
        capture_output=True,
        text=True,
        env=environment(),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0:
        raise steps.BuildFailed(f"{program} --list ended with code {done.returncode}\n{done.stderr[-500:]}")
    return {name: words for name, *words in (line.split() for line in done.stdout.splitlines() if line)}
