# SPDX-License-Identifier: MIT
"""Libraries of the runtime variant. They are copies of the compiler's own in which a few units are replaced; no text of
OCaml's runtime is kept here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from overlay import Overlay

from build import HOME, Stop, say
from build.compiler import Compiler

FLAGS = (
    "-pthread", "-D_FILE_OFFSET_BITS=64", "-DCAML_NAME_SPACE", "-DCAMLDLLIMPORT=", "-DIN_CAML_RUNTIME",
    "-Werror=implicit-function-declaration",
)  # fmt: skip


@dataclass(frozen=True)
class Flavour:
    name: str
    stock: str  # the compiler's library that is copied
    suffix: str  # of the objects in it
    variant: str  # what -runtime-variant is given
    defines: tuple[str, ...] = ()
    tested: bool = True  # is it safe for foreign pointers, as the self-test wants?
    over: str = ""  # the suffix of an overlay that adds to that of the other flavours
    since: tuple[int, int] = (4, 14)  # the first version of OCaml for which there is one

    @property
    def native(self) -> bool:
        return self.stock.startswith("libasmrun")

    @property
    def ours(self) -> str:
        return f"{'libasmrun' if self.native else 'libcamlrun'}{self.variant}.a"

    @property
    def has_interpreter(self) -> bool:
        return not self.native and not self.variant.endswith("_pic")


DEBUG = ("-DDEBUG", "-DOH_DEBUG=1")
CHECK = ("-DOH_CHECKING=1",)
FLAVOURS = (
    Flavour("release", "libasmrun.a", "n", "_outheap"),
    Flavour("debug", "libasmrund.a", "nd", "_outheapd", DEBUG),
    Flavour("pic", "libasmrun_pic.a", "npic", "_outheap_pic"),
    Flavour("instrumented", "libasmruni.a", "ni", "_outheapi", ("-DCAML_INSTR",)),
    Flavour("bytecode", "libcamlrun.a", "b", "_outheap"),
    Flavour("bytecode-debug", "libcamlrund.a", "bd", "_outheapd", DEBUG),
    Flavour("bytecode-instrumented", "libcamlruni.a", "bi", "_outheapi", ("-DCAML_INSTR",)),
    Flavour("bytecode-pic", "libcamlrun_pic.a", "bpic", "_outheap_pic"),
    Flavour("count", "libasmrun.a", "n", "_outheap_count", ("-DOH_COUNT=1",)),
    Flavour("check", "libasmrun.a", "n", "_outheap_check", CHECK, over="check", since=(5, 4)),
    Flavour("bytecode-check", "libcamlrun.a", "b", "_outheap_check", CHECK, over="check", since=(5, 4)),
)


BACKENDS = ("mmap", "sbrk")


def with_backend(flavour: Flavour, backend: str) -> Flavour:
    """The same over another source of memory, with a name of its own."""
    if backend == "mmap":
        return flavour
    variant = flavour.variant.replace("_outheap", f"_outheap_{backend}", 1)
    return replace(flavour, variant=variant, defines=(*flavour.defines, f"-DOH_{backend.upper()}=1"))


def with_defaults(flavour: Flavour, settings: str) -> Flavour:
    """The same with settings of its own."""
    return replace(flavour, defines=(*flavour.defines, f'-DOH_DEFAULTS="{settings}"')) if settings else flavour


@dataclass
class Build:
    compiler: Compiler
    overlays: dict[str, tuple[Overlay, Path]]  # by suffix, with the folder of the units' texts after the substitutions
    sources: Path
    work: Path
    staging: Path  # folder of what is made
    output: Path  # folder where it will be
    jobs: int
    verbose: bool

    def units(self, members: set[str], flavour: Flavour) -> list[tuple[Path, str, list[str]]]:
        """Source, name of the object, further options. Some units of the runtime are of the other code generator's
        library only."""
        runtime, found = self.sources / "runtime", []
        overlay, _ = self.overlays[flavour.over]
        there = lambda unit: f"{unit}.{flavour.suffix}.o" in members  # noqa: E731
        for file in overlay.files:
            if not (runtime / file.name).exists() or there(file.stem):
                found.append((file, file.stem, []))
        prelude = ["-include", str(overlay.folders[-1] / "prelude.h")]
        found += [(runtime / f"{unit}.c", unit, prelude) for unit in overlay.plain if there(unit)]
        found += [(file, f"outheap_{file.stem}", []) for file in sorted((HOME / "runtime/core").glob("*.c"))]
        return found

    def library(self, flavour: Flavour) -> bool:
        """False: this compiler has no library of which it would be a variant."""
        stock = self.compiler.library / flavour.stock
        if flavour.over not in self.overlays:
            say(f"skipping {flavour.name}: it needs OCaml {flavour.since[0]}.{flavour.since[1]} or later")
            return False
        if not stock.is_file():
            say(f"skipping {flavour.name}: this compiler has no {flavour.stock}")
            return False
        folder = self.work / flavour.name
        folder.mkdir()
        members = set(subprocess.run(["ar", "t", stock], capture_output=True, text=True, check=True).stdout.split())
        flags = [*self.compiler.options_for(stock, f"major_gc.{flavour.suffix}.o", self.work), *FLAGS]
        # The compiler's own runtime for bytecode is not instrumented.
        flags += [*self.compiler.native_defines, *self.compiler.thread_sanitizer] if flavour.native else []
        flags += flavour.defines
        installed = self.compiler.library
        overlay, edited = self.overlays[flavour.over]
        for place in (*overlay.folders, HOME / "runtime/core"):
            flags += ["-iquote", str(place)]
        for place in (edited, HOME / "include", installed, self.sources / "runtime", installed / "caml"):
            flags.append(f"-I{place}")

        def compile_unit(unit: tuple[Path, str, list[str]]) -> tuple[Path, subprocess.CompletedProcess[str]]:
            file, name, more = unit
            target = folder / f"{name}.{flavour.suffix}.o"
            words = [*self.compiler.cc, *flags, *more, "-c", str(file), "-o", str(target)]
            if self.verbose:
                print(f"+ {shlex.join(words)}", file=sys.stderr, flush=True)
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
            return target, done

        with ThreadPoolExecutor(max(1, self.jobs)) as pool:
            results = list(pool.map(compile_unit, self.units(members, flavour)))
        log = "".join(done.stderr for _, done in results)
        if any(done.returncode != 0 for _, done in results):
            print("\n".join(log.splitlines()[:30]), file=sys.stderr)
            raise Stop(1, f"compilation failed (flavour {flavour.name})")
        if self.verbose:
            print(log, end="", file=sys.stderr)
        archive = self.staging / flavour.ours
        shutil.copyfile(stock, archive)
        objects = [target for target, _ in results]
        done = subprocess.run(["ar", "r", archive, *objects], capture_output=True, text=True)
        if done.returncode != 0:
            raise Stop(1, f"ar failed (flavour {flavour.name}): {done.stderr.strip()}")
        if flavour.has_interpreter:
            self.interpreter(flavour.variant)
        return True

    def interpreter(self, variant: str) -> None:
        """What plain bytecode programs (`ocamlc` without -custom) need: an interpreter in the folder of the libraries,
        and the file from which ocamlc takes their first line, which ocamlc looks for in the folders of -I. That file
        must not change programs for other variants, so the compiler's own interpreters are there too, as links."""
        name, compiler = f"ocamlrun{variant}", self.compiler
        words = [compiler.beside("ocamlc"), "-make-runtime", "-I", self.staging, "-runtime-variant", variant]
        words += ["-nopervasives", "stdlib.cma", "-o", self.work / name]
        relocatable = compiler.release >= (5, 5)
        self._link(name, [*words, *(["-dcamlprimc"] if relocatable else [])])
        if relocatable:
            self._make_standard(name, variant)
        shutil.move(self.work / name, self.staging / name)
        launch = compiler.library / "runtime-launch-info"
        if relocatable:
            # Programs begin with the folder of the compiler's interpreters, or that of -launch-method; the name may
            # have a suffix, which is the compiler's own.
            suffix = launch.read_bytes()[:4].decode("ascii", "replace") if launch.is_file() else ""
            if re.fullmatch("[ -~]{4}", suffix):
                link = self.staging / f"{name}-{suffix}"
                link.unlink(missing_ok=True)
                link.symlink_to(name)
            return
        if launch.is_file():  # OCaml 5.2 to 5.4: how to start, the folder, a program that does
            for stock in ("ocamlrun", "ocamlrund", "ocamlruni"):
                own, link = compiler.beside(stock), self.staging / stock
                if os.access(own, os.X_OK):
                    link.unlink(missing_ok=True)
                    link.symlink_to(own)
            how, _, program = launch.read_bytes().split(b"\n", 2)
            text = how + b"\n" + os.fsencode(self.output) + b"\0\n" + program
            (self.staging / "runtime-launch-info").write_bytes(text)
            return
        line = f"#!{self.output}/{name}"
        if len(line) > 127 or " " in line:
            line = f'#!/bin/sh\nexec "{self.output}/{name}" "$0" "$@"'
        (self.staging / f"camlheader{variant}").write_text(f"{line}\n")

    def _make_standard(self, name: str, variant: str) -> None:
        """From OCaml 5.5 on what -make-runtime has linked runs what is appended to it, and nothing else; the
        compiler's own interpreters run a file. The table of primitives, which says so, was kept: it is linked once
        more."""
        compiler, table = self.compiler, self.work / f"{name}.camlprim.c"
        if not table.is_file():
            raise Stop(1, f"cannot link {name}: ocamlc has not kept its table of primitives")
        text, changed = re.subn(r"(caml_byte_program_mode *= *)APPENDED;", r"\1STANDARD;", table.read_text())
        if changed != 1:
            raise Stop(1, f"cannot link {name}: its table of primitives does not say how programs are found")
        standard = self.work / f"{name}.standard.c"
        standard.write_text(text)
        words = [*shlex.split(compiler["bytecomp_c_compiler"]), f"-I{compiler.library}", "-o", self.work / name]
        words += [standard, "-Wl,-E", f"-L{self.staging}", f"-lcamlrun{variant}"]
        self._link(name, [*words, *shlex.split(compiler["bytecomp_c_libraries"])])

    @staticmethod
    def _link(name: str, words: list[str | Path]) -> None:
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            print("\n".join((done.stdout + done.stderr).splitlines()[:30]), file=sys.stderr)
            raise Stop(1, f"cannot link {name}")
