# SPDX-License-Identifier: MIT
"""Builds the programs: each is compiled once and linked with every runtime."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ... import fetch
from ...compiler import BENCH, BUILT, C_FLAGS, OCAML_FLAGS, ROOT, BuildError, Compiler, run_tool
from . import generate
from .runtimes import Rival, Runtimes

HERE = BENCH / "workloads" / "outheap"
WITH_REGIONS = ("regions", "dictionary")
OVER_REGIONS = {"hashcons": "hashcons", "linear": "linear", "cache": "linear"}  # libraries, which need that of regions
WITH_STEPS = ("young", "helper")
WITH_UNIX = ("follow", "helper", "cache")
WITH_EVENTS = ("helper",)  # with runtime_events, so of OCaml 5
WITH_REDIS = ("dictionary", "cache")  # which speak its protocol
CACHE_MODULES = ("histogram", "stores", "server", "load")
WITH_THEORIES = ("regions", "hashcons")  # which read compiled files of Coq
STATIC_CONSTANTS = 131072  # 3 MB of static data, 49,000 cache lines


def name_of(source: Path) -> str:
    """Its name among the sources of a program: one of par4.ml and par5.ml is the module Par."""
    return "par.ml" if source.stem in ("par4", "par5") else source.name


def includes_of(libraries: list[str]) -> list[str]:
    """Those words of the linker's that the compiler needs, too."""
    return [word for word in libraries if not word.endswith(".cmxa")]


@dataclass(frozen=True)
class Program:
    """How to start a program with a rival's runtime."""

    rival: str
    command: tuple[str, ...]
    folder: Path
    environment: dict = field(default_factory=dict)
    parameters: str = ""  # for OCAMLRUNPARAM


class Builder:
    def __init__(self, compiler: Compiler, runtimes: Runtimes, folder: Path):
        self.compiler, self.runtimes, self.folder = compiler, runtimes, folder
        self.built_coq: dict[Path, Path | None] = {}

    def program(self, name: str, rival: Rival) -> Program:
        flags = self.runtimes.link_flags(rival)
        real = {
            "ocamlopt": self._ocamlopt,
            "coq": self._coq,
            "coq-images": self._coq_images,
            "coq-hashcons": self._coq_hashcons,
        }
        command, folder, environment = real.get(name, self._workload)(name, rival, flags)
        environment = {**environment, **self.runtimes.environment(rival)}
        return Program(rival.name, tuple(map(str, command)), folder, environment, rival.parameters)

    def _linked(self, folder: Path, name: str, rival: Rival, command: list, inputs: bytes, cwd: Path) -> Path:
        """The program, linked again when its parts, its runtime or the command have changed."""
        runtime = (rival.variant or "_stock") + (f"_{rival.cc}" if rival.cc else "")
        runtime += f"+{rival.shift}" if rival.shift else ""
        result, stamp = folder / f"{name}{runtime}.exe", folder / f"{name}{runtime}.stamp"
        command = [*command, *self._padding(folder, rival.shift), "-o", result]
        digest = hashlib.sha256(
            repr([str(c) for c in command]).encode() + inputs + self.runtimes.digest(rival)
        ).hexdigest()
        if not (result.exists() and stamp.exists() and stamp.read_text() == digest):
            folder.mkdir(parents=True, exist_ok=True)
            run_tool(command, cwd)
            stamp.write_text(digest)
        return result

    def _padding(self, folder: Path, size: int) -> list[str]:
        """So many bytes of code, which are placed before the runtime's."""
        if size == 0:
            return []
        source = folder / f"padding{size}.s"
        source.write_text(f".text\n.skip {size}, 0x90\n.section .note.GNU-stack\n")
        run_tool([self.compiler.cc, "-c", source.name], folder)
        return [f"padding{size}.o"]

    # --- our workloads ------------------------------------------------------------------------------------------------

    def _workload(self, name: str, rival: Rival, flags: list[str]):
        folder, common, own = self.folder / name, BENCH / "common", HERE
        ml = [common / "bench.ml", common / "rng.ml", own / "heap.ml", own / f"{name}.ml"]
        c = [common / "bench_stubs.c", own / "heap_stubs.c", *own.glob(f"{name}_stubs.c")]
        if name in WITH_STEPS:
            ml[-1:-1] = [common / "steps.ml"]
            c += [common / "steps_stubs.c"]
        header, libraries, includes, environment = ROOT / "outheap" / "include", [], [], {}
        if name in WITH_UNIX:
            libraries = [*(["-I", "+unix"] if self.compiler.ocaml5 else []), "unix.cmxa"]
        if name in WITH_EVENTS:
            module = ROOT / "outheap/lib/outheap"
            ml[-1:-1] = [module / "outheap.mli", module / "outheap.ml", own / "lanes.ml"]
            c += [module / "outheap_stubs.c"]
            libraries += ["-I", "+runtime_events", "runtime_events.cmxa"]
        if name in WITH_REDIS:
            ml[-1:-1] = [own / "resp.ml"]
        if name in WITH_THEORIES:
            ml[-1:-1] = [own / "vo_files.ml"]
            environment["COQ_THEORIES"] = str(fetch.theories(BUILT / "downloads"))
        if name in WITH_REGIONS:
            region = ROOT / "outheap/lib/region"
            par = ROOT / "outheap" / "tool" / "selftest" / f"par{5 if self.compiler.ocaml5 else 4}.ml"
            ml[-1:-1] = [par, region / "outheap_region.mli", region / "outheap_region.ml"]
            c += sorted(region.glob("*.c"))
            libraries = [*(["-I", "+unix"] if self.compiler.ocaml5 else []), "unix.cmxa"]
            includes = ["-I", region]
        if name in OVER_REGIONS:
            parts = [ROOT / "outheap/lib" / part for part in ("region", OVER_REGIONS[name])]
            ml[-1:-1] = self.compiler.in_order(source for p in parts for source in p.glob("outheap_*.ml*"))
            c += [source for p in parts for source in sorted(p.glob("*.c"))]
            includes = [word for p in parts for word in ("-I", p)]
        if name == "hashcons":
            ml[-1:-1] = [own / "hashcons_rivals.ml", own / "hashcons_steps.ml"]
        if name == "cache":
            ml[-1:-1] = [own / f"cache_{part}.ml" for part in CACHE_MODULES]
        # before anything is compiled: what is not there is installed, and the program differs
        links = self._lmdb(rival) if name == "cache" else []
        headers = [header / "outheap.h", *(h for i in includes[1::2] for h in sorted(i.glob("*.h")))]
        read = b"".join(p.read_bytes() for p in [*ml, *c, *headers, Path(generate.__file__)])
        inputs = hashlib.sha256(read + repr(links).encode()).digest()
        stamp = folder / "objects.stamp"
        modules = [name_of(p) for p in ml]
        if name == "marking":
            modules.insert(2, "constants.ml")
        if name == "hashcons":
            at = modules.index("hashcons_steps.ml")
            modules[at : at + 1] = [f"hashcons_{kind}.ml" for kind in generate.HASHCONS]
        if not (stamp.exists() and stamp.read_bytes() == inputs):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for source in ml:
                shutil.copy(source, folder / name_of(source))
            if name == "marking":
                generate.write(folder / "constants.ml", generate.static_constants(STATIC_CONSTANTS))
            if name == "hashcons":
                generate.hashcons(folder)
            for source in c:
                where = [*includes, "-I", header, "-I", self.compiler.where]
                run_tool([self.compiler.cc, *C_FLAGS, *where, "-c", source], folder)
            run_tool([self.compiler.ocamlopt, *OCAML_FLAGS, *includes_of(libraries), "-c", *modules], folder)
            stamp.write_bytes(inputs)
        objects = [m.replace(".ml", ".cmx") for m in modules if m.endswith(".ml")] + [p.stem + ".o" for p in c]
        # The stubs' reference to Outheap's statistics is weak, so that the stock runtime fits; this makes the linker
        # look for it.
        counting = ["-ccopt", "-Wl,-u,outheap_statistics"] if rival.variant == "_outheap_count" else []
        command = [self.compiler.ocamlopt, *OCAML_FLAGS, *libraries, *objects, *links, *flags, *counting]
        if name == "dictionary":
            environment["WORDNET"] = str(fetch.wordnet(BUILT / "downloads"))
        return [self._linked(folder, name, rival, command, inputs, folder)], folder, environment

    def _lmdb(self, rival: Rival) -> list[str]:
        """What links the cache server with LMDB, where that is; the rival of that name cannot be built without."""
        need = [ROOT / "tools" / "need", "-h", "lmdb.h"]
        there = subprocess.run(need, stdout=subprocess.DEVNULL).returncode == 0
        if not there and rival.name == "lmdb":
            raise BuildError("lmdb.h is missing (Debian: liblmdb-dev)")
        return ["-cclib", "-llmdb"] if there else []

    # --- the compiler -------------------------------------------------------------------------------------------------

    def _ocamlopt(self, name: str, rival: Rival, flags: list[str]):
        folder = self.folder / name
        libraries = self.compiler.where / "compiler-libs"
        main = [libraries / n for n in ("ocamlcommon.cmxa", "ocamloptcomp.cmxa", "optmain.cmx")]
        if absent := [m.name for m in main if not m.exists()]:
            raise BuildError(f"{libraries.name} of {self.compiler.where} has no {' '.join(absent)}")
        command = [self.compiler.ocamlopt, "-linkall", "-I", "+compiler-libs", *main, *flags]
        program = self._linked(folder, name, rival, command, b"".join(m.read_bytes() for m in main), ROOT)
        # The assembler is no part of what is measured: an empty one stands before it in PATH.
        assembler = folder / "bin" / "as"
        assembler.parent.mkdir(exist_ok=True)
        assembler.write_text("#!/bin/sh\nexit 0\n")
        assembler.chmod(0o755)
        return [program, "-w", "-a", "-c"], folder, {"PATH": f"{assembler.parent}:{os.environ['PATH']}"}

    # --- Coq ----------------------------------------------------------------------------------------------------------

    def _coq(self, name: str, rival: Rival, flags: list[str]):
        """coqc of Debian's source package."""
        return self._of_coq(HERE / "coq", "coqc_bin", name, rival, flags)

    def _coq_images(self, name: str, rival: Rival, flags: list[str]):
        """coqtop with images beside its .vo files, which it takes with the rival `regions` alone."""
        script = ROOT / "examples" / "coq-images" / "build"
        command, folder, environment = self._of_coq(script, "coqtop_bin", name, rival, flags)
        wanted = "yes" if rival.environment.get("BENCH_DATA") == "region" else "no"
        return command, folder, {**environment, "COQ_IMAGES": wanted}

    def _coq_hashcons(self, name: str, rival: Rival, flags: list[str]):
        """coqc with its tables over Outheap_hashcons, with the rivals that have cells, and as it is with the others.
        All read the same compiled library."""
        script = HERE / "coq-hashcons"
        theories = self._built(script) / "theories"
        if "BENCH_HASHCONS" in rival.environment:
            return self._of_coq(script, "coqc_bin", name, rival, flags)
        command, folder, environment = self._of_coq(HERE / "coq", "coqc_bin", "coq", rival, flags)
        at = command.index("-R") + 1
        return [*command[:at], theories, *command[at + 1 :]], folder, environment

    def _built(self, script: Path) -> Path:
        """The folder of a Coq that a script builds."""
        if script not in self.built_coq:
            done = subprocess.run([script, self.runtimes.prefix], stdout=subprocess.PIPE, text=True)
            self.built_coq[script] = Path(done.stdout.strip()) if done.returncode == 0 else None
        coq = self.built_coq[script]
        if not coq:
            raise BuildError("Coq was not built: see the messages above")
        return coq

    def _of_coq(self, script: Path, binary: str, name: str, rival: Rival, flags: list[str]):
        """A program of Coq, which a script builds, relinked by the command that dune linked it with."""
        coq = self._built(script)
        build = coq / "coq" / "_build"
        linked = rf"^\$ \(cd _build/default && (.* -o topbin/{binary}\.exe .*)\)$"
        line = next(re.finditer(linked, (build / "log").read_text(), re.M))
        words = shlex.split(line[1])
        at = words.index("-o")
        program = self._linked(
            self.folder / name,
            name,
            rival,
            [*words[:at], *words[at + 2 :], *flags],
            line[1].encode() + b"".join(stamp.read_bytes() for stamp in (*coq.glob(".images"), *coq.glob(".changed"))),
            build / "default",
        )
        installed = build / "install" / "default" / "lib"
        plugins = [word for p in sorted((installed / "coq-core" / "plugins").iterdir()) for word in ("-I", p)]
        environment = {"OCAMLPATH": f"{installed}:{coq / 'lib'}", "OCAMLFIND_CONF": str(coq / "findlib.conf")}
        return (
            [program, "-q", "-w", "none", "-boot", *plugins, "-R", coq / "theories", "Coq"],
            self.folder / name,
            environment,
        )
